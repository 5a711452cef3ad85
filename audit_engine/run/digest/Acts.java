package io.seawall.audit;

import java.util.ArrayDeque;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** What was done, by whom it was told, and in which words. */
final class Acts {
    private static final int ACTS_AT_ONCE = 4096;

    private final Longs all = new Longs();

    long take(long id, long teller, long content) {
        all.add(id);
        all.add(teller);
        all.add(content);
        return 24;
    }

    void addRows(UTF8String cluster, ArrayDeque out) {
        int count = all.size / 3;
        for (int from = 0; from < count; from += ACTS_AT_ONCE) {
            int length = Math.min(ACTS_AT_ONCE, count - from);
            Object[] row = new Object[TaskDigest.COLUMNS];
            row[0] = Integer.valueOf(TaskDigest.OF_ACTS);
            row[1] = cluster;
            for (int column = 0; column < 3; column++) {
                long[] of = new long[length];
                for (int at = 0; at < length; at++) {
                    of[at] = all.of[3 * (from + at) + column];
                }
                row[24 + column] = UnsafeArrayData.fromPrimitiveArray(of);
            }
            out.add(new GenericInternalRow(row));
        }
    }
}
