package io.seawall.audit;

import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.unsafe.types.UTF8String;

/** What was done, by whom it was told, and in which words; by parts, so that no more than one need lie together. */
public final class Acts implements Serializable {
    static final int PARTS = 64;
    private static final int OF_EACH = 5; // its id, and of tellers and contents the least and the most

    private final Longs[] parts = new Longs[PARTS];

    public Acts() {}

    long take(long id, long teller, long content) {
        int part = (int) (id >>> 32) & (PARTS - 1);
        if (parts[part] == null) {
            parts[part] = new Longs();
        }
        parts[part].add(id);
        parts[part].add(teller);
        parts[part].add(content);
        return 24;
    }

    void addRows(UTF8String cluster, ArrayDeque out) {
        for (int part = 0; part < PARTS; part++) {
            if (parts[part] != null) {
                int count = parts[part].size / 3;
                Object[] row = new Object[6];
                row[0] = Integer.valueOf(TaskDigest.OF_ACTS);
                row[1] = cluster;
                row[2] = Integer.valueOf(part);
                for (int column = 0; column < 3; column++) {
                    long[] of = new long[count];
                    for (int at = 0; at < count; at++) {
                        of[at] = parts[part].of[3 * at + column];
                    }
                    row[3 + column] = UnsafeArrayData.fromPrimitiveArray(of);
                }
                out.add(new GenericInternalRow(row));
            }
        }
    }

    /** The ids that several told, and not in the same words; of all that tasks saw of one part. */
    public ArrayData unlike(ArrayData ids, ArrayData tellers, ArrayData contents) {
        int count = ids.numElements();
        int mask = Integer.highestOneBit(Math.max(1, count)) * 4 - 1;
        long[] each = new long[(mask + 1) * OF_EACH];
        boolean[] isThere = new boolean[mask + 1];
        for (int n = 0; n < count; n++) {
            long id = ids.getLong(n);
            int place = (int) (id * 0x9E3779B97F4A7C15L >>> 32) & mask;
            while (isThere[place] && each[place * OF_EACH] != id) {
                place = (place + 1) & mask;
            }
            int at = place * OF_EACH;
            long teller = tellers.getLong(n);
            long content = contents.getLong(n);
            each[at] = id;
            each[at + 1] = isThere[place] ? Math.min(each[at + 1], teller) : teller;
            each[at + 2] = isThere[place] ? Math.max(each[at + 2], teller) : teller;
            each[at + 3] = isThere[place] ? Math.min(each[at + 3], content) : content;
            each[at + 4] = isThere[place] ? Math.max(each[at + 4], content) : content;
            isThere[place] = true;
        }
        Longs found = new Longs();
        for (int at = 0; at < each.length; at += OF_EACH) {
            if (each[at + 1] != each[at + 2] && each[at + 3] != each[at + 4]) {
                found.add(each[at]);
            }
        }
        long[] inOrder = Arrays.copyOf(found.of, found.size);
        Arrays.sort(inOrder);
        return UnsafeArrayData.fromPrimitiveArray(inOrder);
    }
}
