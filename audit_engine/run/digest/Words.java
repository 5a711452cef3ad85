package io.seawall.audit;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;

/** Of each 64 numbers which came, and how many rows. */
final class Words {
    private long[] words = new long[64];
    private long[] bits = new long[64];
    private long[] counts = new long[64]; // 0: nothing is here
    private int size = 0;
    private int at = 0;

    long take(long number) {
        long word = number >> 6;
        if (counts[at] == 0 || words[at] != word) {
            at = placeOf(word);
            if (counts[at] == 0 && 2 * ++size > words.length) {
                grow();
                at = placeOf(word);
            }
            words[at] = word;
        }
        boolean isNew = counts[at]++ == 0;
        bits[at] |= 1L << (number & 63);
        return isNew ? 48 : 0;
    }

    void add(long word, long moreBits, long moreCounts) {
        int place = placeOf(word);
        if (counts[place] == 0 && 2 * ++size > words.length) {
            grow();
            place = placeOf(word);
        }
        words[place] = word;
        bits[place] |= moreBits;
        counts[place] += moreCounts;
    }

    long bitsOf(long word) {
        return bits[placeOf(word)];
    }

    long countOf(long word) {
        return counts[placeOf(word)];
    }

    long[] inOrder() {
        long[] found = new long[size];
        int next = 0;
        for (int place = 0; place < words.length; place++) {
            if (counts[place] != 0) {
                found[next++] = words[place];
            }
        }
        Arrays.sort(found);
        return found;
    }

    private int placeOf(long word) {
        int mask = words.length - 1;
        long mixed = word * 0x9E3779B97F4A7C15L;
        int place = (int) (mixed >>> 40) & mask;
        while (counts[place] != 0 && words[place] != word) {
            place = (place + 1) & mask;
        }
        return place;
    }

    private void grow() {
        long[] oldWords = words;
        long[] oldBits = bits;
        long[] oldCounts = counts;
        words = new long[2 * oldWords.length];
        bits = new long[words.length];
        counts = new long[words.length];
        for (int old = 0; old < oldWords.length; old++) {
            if (oldCounts[old] != 0) {
                int place = placeOf(oldWords[old]);
                words[place] = oldWords[old];
                bits[place] = oldBits[old];
                counts[place] = oldCounts[old];
            }
        }
    }

    /** In four columns: words of which each number came once, as ranges of words; and all others, one by one. */
    void put(Object[] row, int column) {
        long[] all = inOrder();
        Ranges whole = new Ranges();
        Longs others = new Longs();
        for (int at = 0; at < all.length; at++) {
            int place = placeOf(all[at]);
            if (bits[place] == -1 && counts[place] == 64) {
                whole.join(all[at], all[at] + 1);
            } else {
                others.add(all[at]);
            }
        }
        long[][] found = new long[3][others.size];
        for (int at = 0; at < others.size; at++) {
            int place = placeOf(others.of[at]);
            found[0][at] = words[place];
            found[1][at] = bits[place];
            found[2][at] = counts[place];
        }
        row[column] = whole.array();
        for (int each = 0; each < 3; each++) {
            row[column + 1 + each] = UnsafeArrayData.fromPrimitiveArray(found[each]);
        }
    }
}
