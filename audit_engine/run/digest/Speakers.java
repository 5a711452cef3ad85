package io.seawall.audit;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What one task sees of each speaker of each log, side by side in a few arrays.
 *
 * Each row is about another speaker, and of tens of thousands none is near by: what a row asks of one lies in one
 * stretch of longs, what it reads goes behind what was read before into a piece of 64 bytes, and the rest is looked at
 * when something changes only.
 */
final class Speakers {
    // Of each, in `hot`.
    private static final int LAST_NUMBER = 0;
    private static final int LAST_SEQ = 1;
    private static final int LAST_MS = 2;
    private static final int READ_MS = 3; // of the last reading
    private static final int WATERMARK = 4;
    private static final int EPOCH = 5; // of the event before, as the next ones; so are those behind it
    private static final int REPLICA = 6;
    private static final int LIFE = 7;
    private static final int START = 8;
    private static final int LOCAL_START = 9;
    private static final int EVENTS = 10;
    private static final int PLAIN = 11;
    private static final int FROM = 12; // the first piece of the stretch's readings; NOWHERE: there is no stretch
    private static final int AT = 13; // where the next reading goes
    private static final int LOG = 14; // its topic's id, of `row.topicIds`, and its partition
    private static final int TOPIC = 15; // of `row.topics`, that it was called by last, of those that are audited
    private static final int WIDTH = 16;
    // Of each, in `cold`: the least and the most of each spread, and how its stretch began.
    private static final int MOST = Speaker.SPREADS;
    private static final int FIRST_NUMBER = 2 * Speaker.SPREADS;
    private static final int FIRST_SEQ = FIRST_NUMBER + 1;
    private static final int FIRST_MS = FIRST_NUMBER + 2;
    private static final int NEWEST_LEAST_MS = FIRST_NUMBER + 3;
    private static final int GREATEST_TOPIC = FIRST_NUMBER + 4; // of all that it was called by
    private static final int COLD_WIDTH = FIRST_NUMBER + 5;

    private static final int PIECE = 64;
    private static final int HEAD = 5; // of a piece: where the next one is, and how many bytes it has
    private static final int LONGEST = 20; // two numbers
    private static final long NOWHERE = -1;
    private static final long NONE = EventRow.NONE;

    int size = 0;
    private long[] hot = new long[1024 * WIDTH];
    private long[] cold = new long[1024 * COLD_WIDTH];
    private Emitter[] emitters = new Emitter[1024];
    private List[] finished = new List[1024]; // stretches, but the one that goes on
    private int[] table = new int[4096]; // who it is, plus one
    private long[] places = new long[4096];
    private byte[] readings = new byte[1 << 16];
    private int used = 0;
    private final EventRow row; // whose texts they are told by

    Speakers(EventRow row) {
        this.row = row;
    }

    static long placeOf(int topicId, int partition, Emitter emitter) {
        long hash = logOf(topicId, partition) * 0x9E3779B97F4A7C15L + emitter.number * 0xC2B2AE3D27D4EB4FL;
        hash = (hash ^ (hash >>> 32)) * 0xD6E8FEB86659FD93L;
        return hash ^ (hash >>> 32);
    }

    private static long logOf(int topicId, int partition) {
        return (long) topicId << 32 | partition & 0xFFFFFFFFL;
    }

    /** Nothing but looks, at what is to be looked at soon. */
    long lookFor(long place) {
        int at = (int) place & (table.length - 1);
        return table[at] + places[at];
    }

    long lookNear(long place) {
        int base = Math.max(0, table[(int) place & (table.length - 1)] - 1) * WIDTH;
        return hot[base] + hot[base + 8] + hot[base + WIDTH - 1];
    }

    long lookAt(int speaker) {
        return readings[(int) Math.max(0, hot[speaker * WIDTH + AT])];
    }

    /** `said` names it. */
    int of(TaskDigest.Said said) {
        int at = (int) said.place & (table.length - 1);
        while (table[at] != 0) {
            if (places[at] == said.place && isOf(table[at] - 1, said)) {
                return table[at] - 1;
            }
            at = (at + 1) & (table.length - 1);
        }
        return begin(said);
    }

    private boolean isOf(int speaker, TaskDigest.Said said) {
        return hot[speaker * WIDTH + LOG] == logOf(said.topicId, said.partition) && emitters[speaker] == said.emitter;
    }

    private int begin(TaskDigest.Said said) {
        if (size == emitters.length) {
            grow();
        }
        int speaker = size++;
        int at = speaker * WIDTH;
        emitters[speaker] = said.emitter;
        hot[at + LOG] = logOf(said.topicId, said.partition);
        hot[at + TOPIC] = Texts.NONE;
        hot[at + FROM] = NOWHERE;
        Arrays.fill(hot, at + EPOCH, at + LOCAL_START + 1, Speaker.UNSAID);
        Arrays.fill(cold, speaker * COLD_WIDTH, speaker * COLD_WIDTH + MOST, Long.MAX_VALUE);
        Arrays.fill(cold, speaker * COLD_WIDTH + MOST, speaker * COLD_WIDTH + FIRST_NUMBER, NONE);
        cold[speaker * COLD_WIDTH + NEWEST_LEAST_MS] = Long.MAX_VALUE;
        cold[speaker * COLD_WIDTH + GREATEST_TOPIC] = Texts.NONE;
        if (2 * size > table.length) {
            growTable();
        }
        enter(said.place, speaker);
        return speaker;
    }

    private void enter(long place, int speaker) {
        int at = (int) place & (table.length - 1);
        while (table[at] != 0) {
            at = (at + 1) & (table.length - 1);
        }
        table[at] = speaker + 1;
        places[at] = place;
    }

    private void grow() {
        int length = 2 * emitters.length;
        hot = Arrays.copyOf(hot, length * WIDTH);
        cold = Arrays.copyOf(cold, length * COLD_WIDTH);
        emitters = (Emitter[]) Arrays.copyOf(emitters, length);
        finished = (List[]) Arrays.copyOf(finished, length);
    }

    private void growTable() {
        int[] oldTable = table;
        long[] oldPlaces = places;
        table = new int[2 * oldTable.length];
        places = new long[table.length];
        for (int old = 0; old < oldTable.length; old++) {
            if (oldTable[old] != 0) {
                enter(oldPlaces[old], oldTable[old] - 1);
            }
        }
    }

    /** Whether its log is audited by this name; it is known by the greatest of those. */
    boolean call(int speaker, int topic) {
        if (topic == Texts.NONE) {
            return false;
        }
        if (hot[speaker * WIDTH + TOPIC] == topic) {
            return true;
        }
        if (!row.kinds.isAudited(row.topics.text(topic))) {
            return false;
        }
        hot[speaker * WIDTH + TOPIC] = topic;
        UTF8String known = name(speaker);
        if (known == null || known.compareTo(row.topics.text(topic)) < 0) {
            cold[speaker * COLD_WIDTH + GREATEST_TOPIC] = topic;
        }
        return true;
    }

    private UTF8String name(int speaker) {
        return row.topics.text((int) cold[speaker * COLD_WIDTH + GREATEST_TOPIC]);
    }

    /** What comes back is about how much more is held. */
    long take(int speaker, TaskDigest.Said said, boolean isAudited) {
        int at = speaker * WIDTH;
        hot[at + EVENTS]++;
        hot[at + PLAIN] += said.isPlain && isAudited ? 1 : 0;
        if (said.newestMs != NONE) {
            int place = speaker * COLD_WIDTH + NEWEST_LEAST_MS;
            cold[place] = Math.min(cold[place], said.newestMs);
        }
        if (said.epoch != hot[at + EPOCH]
            || said.replica != hot[at + REPLICA]
            || said.life != hot[at + LIFE]
            || said.start != hot[at + START]
            || said.localStart != hot[at + LOCAL_START]) {
            stand(speaker, said);
        }
        if (said.number == NONE) {
            return 0;
        }
        long more = 0;
        boolean goesOn = hot[at + FROM] != NOWHERE
            && said.number == hot[at + LAST_NUMBER] + 1
            && said.seq > hot[at + LAST_SEQ]
            && said.observedMs >= hot[at + LAST_MS];
        if (!goesOn) {
            beginStretch(speaker, said);
            more = 160;
        }
        hot[at + LAST_NUMBER] = said.number;
        hot[at + LAST_SEQ] = said.seq;
        hot[at + LAST_MS] = said.observedMs;
        if (said.watermark != NONE) {
            read(at, said.observedMs - hot[at + READ_MS], said.watermark - hot[at + WATERMARK]);
            hot[at + READ_MS] = said.observedMs;
            hot[at + WATERMARK] = said.watermark;
            more += 8;
        }
        return more;
    }

    private void stand(int speaker, TaskDigest.Said said) {
        int at = speaker * WIDTH;
        hot[at + EPOCH] = said.epoch;
        hot[at + REPLICA] = said.replica;
        hot[at + LIFE] = said.life;
        hot[at + START] = said.start;
        hot[at + LOCAL_START] = said.localStart;
        int spreads = speaker * COLD_WIDTH;
        for (int n = 0; n < Speaker.SPREADS; n++) {
            long value = hot[at + EPOCH + n];
            if (value != NONE) {
                cold[spreads + n] = Math.min(cold[spreads + n], value);
                cold[spreads + MOST + n] = Math.max(cold[spreads + MOST + n], value);
            }
        }
    }

    private void beginStretch(int speaker, TaskDigest.Said said) {
        int at = speaker * WIDTH;
        if (hot[at + FROM] != NOWHERE) {
            if (finished[speaker] == null) {
                finished[speaker] = new ArrayList(2);
            }
            finished[speaker].add(stretch(speaker));
        }
        int began = speaker * COLD_WIDTH;
        cold[began + FIRST_NUMBER] = said.number;
        cold[began + FIRST_SEQ] = said.seq;
        cold[began + FIRST_MS] = said.observedMs;
        int piece = newPiece();
        hot[at + FROM] = piece;
        hot[at + AT] = piece + HEAD;
        hot[at + READ_MS] = said.observedMs;
        hot[at + WATERMARK] = 0;
    }

    private int newPiece() {
        if (used + PIECE > readings.length) {
            readings = Arrays.copyOf(readings, 2 * readings.length);
        }
        used += PIECE;
        return used - PIECE;
    }

    private void read(int at, long laterMs, long higher) {
        int place = (int) hot[at + AT];
        int piece = place & -PIECE;
        if (place + LONGEST > piece + PIECE) {
            int next = newPiece();
            for (int n = 0; n < 4; n++) {
                readings[piece + n] = (byte) (next >>> (8 * n));
            }
            readings[piece + 4] = (byte) (place - piece);
            place = next + HEAD;
        }
        place = Packed.write(readings, place, laterMs);
        hot[at + AT] = Packed.write(readings, place, higher);
    }

    /** The one that goes on, as it is. */
    private Stretch stretch(int speaker) {
        int at = speaker * WIDTH;
        int began = speaker * COLD_WIDTH;
        int last = (int) hot[at + AT];
        Packed packed = new Packed(new byte[PIECE]);
        int piece = (int) hot[at + FROM];
        while (piece != (last & -PIECE)) {
            packed.append(readings, piece + HEAD, piece + readings[piece + 4]);
            int next = 0;
            for (int n = 0; n < 4; n++) {
                next |= (readings[piece + n] & 0xFF) << (8 * n);
            }
            piece = next;
        }
        packed.append(readings, piece + HEAD, last);
        Stretch found = new Stretch(cold[began + FIRST_NUMBER], cold[began + FIRST_SEQ], cold[began + FIRST_MS]);
        found.end(hot[at + LAST_NUMBER], hot[at + LAST_SEQ], hot[at + LAST_MS], packed);
        return found;
    }

    private Speaker speaker(int of) {
        int at = of * WIDTH;
        Speaker found = new Speaker(emitters[of].name);
        found.count(hot[at + EVENTS], hot[at + PLAIN], cold[of * COLD_WIDTH + NEWEST_LEAST_MS]);
        for (int n = 0; n < Speaker.SPREADS; n++) {
            found.spread(n, cold[of * COLD_WIDTH + n], cold[of * COLD_WIDTH + MOST + n]);
        }
        if (finished[of] != null) {
            found.stretches().addAll(finished[of]);
        }
        if (hot[at + FROM] != NOWHERE) {
            found.stretches().add(stretch(of));
        }
        return found;
    }

    /** A row a log. */
    void addRows(long readingsMax, ArrayDeque out) {
        Map logs = new HashMap();
        for (int speaker = 0; speaker < size; speaker++) {
            List name = Arrays.asList(new Object[] {
                emitters[speaker].name.cluster, Long.valueOf(hot[speaker * WIDTH + LOG])
            });
            List own = (List) logs.get(name);
            if (own == null) {
                own = new ArrayList(4);
                logs.put(name, own);
            }
            own.add(Integer.valueOf(speaker));
        }
        for (Iterator each = logs.values().iterator(); each.hasNext(); ) {
            out.add(row((List) each.next(), readingsMax));
        }
    }

    /** With those that said something in time. */
    private GenericInternalRow row(List of, long readingsMax) {
        List heard = new ArrayList(of.size());
        long bytes = 0;
        UTF8String topic = null;
        for (int n = 0; n < of.size(); n++) {
            int speaker = ((Integer) of.get(n)).intValue();
            UTF8String name = name(speaker);
            topic = topic == null || (name != null && topic.compareTo(name) < 0) ? name : topic;
            if (hot[speaker * WIDTH + EVENTS] > 0) {
                Speaker own = speaker(speaker);
                heard.add(own);
                bytes += own.readingBytes();
            }
        }
        Packed packed = new Packed(new byte[PIECE]);
        packed.write(heard.size());
        for (int n = 0; n < heard.size(); n++) {
            ((Speaker) heard.get(n)).pack(packed, bytes <= readingsMax);
        }
        int first = ((Integer) of.get(0)).intValue();
        long log = hot[first * WIDTH + LOG];
        Object[] found = new Object[6];
        found[0] = Integer.valueOf(TaskDigest.OF_LOG);
        found[1] = emitters[first].name.cluster;
        found[2] = row.topicIds.text((int) (log >>> 32));
        found[3] = Integer.valueOf((int) log);
        found[4] = topic;
        found[5] = packed.written();
        return new GenericInternalRow(found);
    }
}
