package io.seawall.audit;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;

final class Longs {
    long[] of = new long[2];
    int size = 0;

    void add(long value) {
        if (size == of.length) {
            of = Arrays.copyOf(of, 2 * size);
        }
        of[size++] = value;
    }

    /** If it is not among them. */
    void addPair(long one, long other) {
        for (int at = 0; at < size; at += 2) {
            if (of[at] == one && of[at + 1] == other) {
                return;
            }
        }
        add(one);
        add(other);
    }

    ArrayData array() {
        return UnsafeArrayData.fromPrimitiveArray(Arrays.copyOf(of, size));
    }
}
