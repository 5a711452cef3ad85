package io.seawall.audit;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The texts of one column by numbers, so that what goes by a text need not read it: the same text has the same number,
 * until all are forgotten. Where Parquet numbers them itself, each is read once a batch.
 */
final class Texts {
    static final int NONE = -1;

    long held = 0; // bytes, about
    private final Map numbers = new HashMap(); // Integer by UTF8String
    private UTF8String[] texts = new UTF8String[16];
    private int size = 0;
    private ColumnVector column;
    private ColumnVector theirs; // Parquet's numbers in this batch; null where it has none
    private int[] known = new int[16]; // ours, by theirs
    private int[] since = new int[16]; // in which batch that was found
    private int batch = 0;

    void open(ColumnVector of) {
        column = of;
        theirs = null;
        batch++;
        if (of instanceof WritableColumnVector && ((WritableColumnVector) of).hasDictionary()) {
            theirs = ((WritableColumnVector) of).getDictionaryIds();
        }
    }

    /** Of the row at this place of the batch. */
    int at(int place) {
        if (column.isNullAt(place)) {
            return NONE;
        }
        if (theirs == null) {
            return of(column.getUTF8String(place));
        }
        int number = theirs.getInt(place);
        if (number >= known.length) {
            known = Arrays.copyOf(known, 2 * number);
            since = Arrays.copyOf(since, 2 * number);
        }
        if (since[number] != batch) {
            known[number] = of(column.getUTF8String(place));
            since[number] = batch;
        }
        return known[number];
    }

    UTF8String text(int number) {
        return number == NONE ? null : texts[number];
    }

    private int of(UTF8String text) {
        Integer found = (Integer) numbers.get(text);
        if (found != null) {
            return found.intValue();
        }
        if (size == texts.length) {
            texts = (UTF8String[]) Arrays.copyOf(texts, 2 * size);
        }
        texts[size] = text.clone();
        numbers.put(texts[size], Integer.valueOf(size));
        held += 128 + text.numBytes();
        return size++;
    }

    /** The batch that is open goes on. */
    void forget() {
        numbers.clear();
        texts = new UTF8String[16];
        size = 0;
        held = 0;
        batch++;
    }
}
