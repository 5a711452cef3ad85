package io.seawall.audit;

import org.apache.spark.sql.catalyst.util.ArrayData;

/** A set of numbers, as starts and ends, one behind the other. */
final class Ranges {
    private final Longs ends = new Longs();

    long take(long number) {
        int size = ends.size;
        if (size > 0 && number <= ends.of[size - 1] && number >= ends.of[size - 2]) {
            if (number == ends.of[size - 1]) {
                ends.of[size - 1]++;
            }
            return 0;
        }
        ends.add(number);
        ends.add(number + 1);
        return 16;
    }

    /** In order of their starts. */
    void join(long start, long end) {
        int size = ends.size;
        if (size > 0 && start <= ends.of[size - 1]) {
            ends.of[size - 1] = Math.max(ends.of[size - 1], end);
        } else {
            ends.add(start);
            ends.add(end);
        }
    }

    long first() {
        return ends.of[0];
    }

    long last() {
        return ends.of[ends.size - 1] - 1;
    }

    ArrayData array() {
        return ends.array();
    }
}
