package io.seawall.audit;

import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;

/** The numbers of one run of an emitter, of all words that tasks filled; a word may come several times. */
public final class Numbers implements Serializable {
    public Numbers() {}

    /** As ranges, starts and ends, one behind the other; and the words of which some number came more than once. */
    public InternalRow of(ArrayData whole, ArrayData words, ArrayData bits, ArrayData counts) {
        Words all = new Words();
        for (int at = 0; at < whole.numElements(); at += 2) {
            for (long word = whole.getLong(at); word < whole.getLong(at + 1); word++) {
                all.add(word, -1, 64);
            }
        }
        for (int at = 0; at < words.numElements(); at++) {
            all.add(words.getLong(at), bits.getLong(at), counts.getLong(at));
        }
        long[] inOrder = all.inOrder();
        Ranges numbers = new Ranges();
        Longs twice = new Longs();
        for (int at = 0; at < inOrder.length; at++) {
            long word = inOrder[at];
            long own = all.bitsOf(word);
            if (all.countOf(word) > Long.bitCount(own)) {
                twice.add(word);
            }
            join(numbers, word << 6, own);
        }
        return new GenericInternalRow(new Object[] {numbers.array(), twice.array()});
    }

    private static void join(Ranges numbers, long first, long bits) {
        int at = 0;
        while (at < 64 && bits >>> at != 0) {
            int start = at + Long.numberOfTrailingZeros(bits >>> at);
            int length = Long.numberOfTrailingZeros(~(bits >>> start)); // 64 where all are there
            at = Math.min(64, start + length);
            numbers.join(first + start, first + at);
        }
    }
}
