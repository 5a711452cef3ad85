package io.seawall.audit;

import java.io.Serializable;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;

/** One log, of all that tasks saw of it. */
public final class Told implements Serializable {
    public Told() {}

    /** Of all that was seen of one log: each of its speakers. */
    public ArrayData merged(ArrayData seen) {
        Map speakers = new HashMap();
        for (int at = 0; at < seen.numElements(); at++) {
            Packed packed = new Packed(seen.getBinary(at));
            for (long left = packed.read(); left > 0; left--) {
                Speaker speaker = new Speaker(packed);
                Speaker known = (Speaker) speakers.get(speaker.name);
                if (known == null) {
                    speakers.put(speaker.name, speaker);
                } else {
                    known.add(speaker);
                }
            }
        }
        Speaker[] all = (Speaker[]) speakers.values().toArray(new Speaker[speakers.size()]);
        Arrays.sort(all);
        boolean isInLine = true;
        for (int at = 0; at < all.length; at++) {
            isInLine &= all[at].lineUp();
        }
        if (isInLine) {
            countFalls(all);
        }
        Object[] told = new Object[all.length];
        for (int at = 0; at < all.length; at++) {
            told[at] = all[at].told(isInLine);
        }
        return new GenericArrayData(told);
    }

    /** Of each speaker the readings that are lower than another before them; all of them are in line. */
    private static void countFalls(Speaker[] all) {
        Readings[] heads = new Readings[all.length];
        for (int at = 0; at < all.length; at++) {
            heads[at] = new Readings(all[at]);
            heads[at].next();
        }
        long highest = EventRow.NONE;
        while (true) {
            int first = -1;
            for (int at = 0; at < heads.length; at++) {
                // Of one moment, the speaker that is named first.
                if (heads[at].isThere && (first == -1 || heads[at].atMs < heads[first].atMs)) {
                    first = at;
                }
            }
            if (first == -1) {
                return;
            }
            all[first].spread(Speaker.MARK, heads[first].watermark);
            if (heads[first].watermark < highest) {
                all[first].falls++;
            } else {
                highest = heads[first].watermark;
            }
            heads[first].next();
        }
    }

    /** A speaker's readings, one by one. */
    static final class Readings {
        boolean isThere = true;
        long atMs = 0;
        long watermark = 0;
        private final Speaker speaker;
        private int stretch = -1;
        private Packed from;

        Readings(Speaker speaker) {
            this.speaker = speaker;
        }

        void next() {
            while (from == null || from.isAtEnd()) {
                stretch++;
                if (stretch == speaker.stretchCount()) {
                    isThere = false;
                    return;
                }
                from = new Packed(speaker.stretch(stretch).written());
                atMs = speaker.stretch(stretch).firstMs;
                watermark = 0;
            }
            atMs += from.read();
            watermark += from.read();
        }
    }
}
