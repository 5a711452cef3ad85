package io.seawall.audit;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/** What one run of an emitter says of one log. */
final class Speaker implements Comparable {
    static final int SPREADS = 5; // epoch, the replica's broker, life, log start, local start
    static final int MARK = SPREADS; // the watermark's own spread comes behind those
    private static final long NONE = EventRow.NONE;
    static final long UNSAID = Long.MIN_VALUE + 1; // what no row says

    final Name name;
    long falls = 0;
    private long events = 0;
    private long plain = 0;
    private boolean isWhole = true; // with its readings
    private long newestLeastMs = Long.MAX_VALUE;
    private final long[] least = new long[SPREADS + 1]; // those five, and the watermark
    private final long[] most = new long[SPREADS + 1];
    private ArrayList stretches = new ArrayList(1);

    Speaker(Name name) {
        this.name = name;
        Arrays.fill(least, Long.MAX_VALUE);
        Arrays.fill(most, NONE);
    }

    Speaker(Packed packed) {
        this(new Name());
        name.broker = (int) packed.read();
        name.component = UTF8String.fromBytes(packed.readBytes());
        name.incarnation = packed.read();
        events = packed.read();
        plain = packed.read();
        isWhole = packed.read() == 1;
        newestLeastMs = packed.read();
        for (int at = 0; at <= SPREADS; at++) {
            least[at] = packed.read();
            most[at] = packed.read();
        }
        for (long left = packed.read(); left > 0; left--) {
            stretches.add(new Stretch(packed));
        }
    }

    void pack(Packed packed, boolean withReadings) {
        packed.write(name.broker);
        packed.writeBytes(name.component.getBytes());
        packed.write(name.incarnation);
        packed.write(events);
        packed.write(plain);
        packed.write(withReadings ? 1 : 0);
        packed.write(newestLeastMs);
        for (int at = 0; at <= SPREADS; at++) {
            packed.write(least[at]);
            packed.write(most[at]);
        }
        packed.write(stretches.size());
        for (int at = 0; at < stretches.size(); at++) {
            stretch(at).pack(packed, withReadings);
        }
    }

    void count(long ofEvents, long ofPlain, long leastNewestMs) {
        events = ofEvents;
        plain = ofPlain;
        newestLeastMs = leastNewestMs;
    }

    void spread(int at, long theLeast, long theMost) {
        least[at] = Math.min(least[at], theLeast);
        most[at] = Math.max(most[at], theMost);
    }

    List stretches() {
        return stretches;
    }

    void spread(int at, long value) {
        if (value != NONE) {
            least[at] = Math.min(least[at], value);
            most[at] = Math.max(most[at], value);
        }
    }

    void add(Speaker other) {
        events += other.events;
        plain += other.plain;
        isWhole &= other.isWhole;
        newestLeastMs = Math.min(newestLeastMs, other.newestLeastMs);
        for (int at = 0; at <= SPREADS; at++) {
            least[at] = Math.min(least[at], other.least[at]);
            most[at] = Math.max(most[at], other.most[at]);
        }
        stretches.addAll(other.stretches);
    }

    /** Whether all that has a number stands in one line of them; from then on they are in order. */
    boolean lineUp() {
        Object[] all = stretches.toArray();
        Arrays.sort(all);
        stretches = new ArrayList(Arrays.asList(all));
        for (int at = 1; at < all.length; at++) {
            if (!((Stretch) all[at - 1]).isFollowedBy((Stretch) all[at])) {
                return false;
            }
        }
        return isWhole;
    }

    long readingBytes() {
        long found = 0;
        for (int at = 0; at < stretches.size(); at++) {
            found += stretch(at).size();
        }
        return found;
    }

    int stretchCount() {
        return stretches.size();
    }

    Stretch stretch(int at) {
        return (Stretch) stretches.get(at);
    }

    InternalRow told(boolean isInLine) {
        Ranges numbers = new Ranges();
        long firstMs = Long.MAX_VALUE;
        long lastMs = NONE;
        for (int at = 0; at < stretches.size(); at++) {
            Stretch each = stretch(at);
            numbers.join(each.firstNumber, each.lastNumber + 1);
            firstMs = Math.min(firstMs, each.firstMs);
            lastMs = Math.max(lastMs, each.lastMs);
        }
        boolean isThere = !stretches.isEmpty();
        Object[] found = new Object[13 + 2 * (SPREADS + 1)];
        found[0] = Integer.valueOf(name.broker);
        found[1] = name.component;
        found[2] = Long.valueOf(name.incarnation);
        found[3] = Long.valueOf(events);
        found[4] = Long.valueOf(plain);
        found[5] = Boolean.valueOf(isInLine);
        found[6] = Long.valueOf(falls);
        found[7] = isThere ? Long.valueOf(numbers.first()) : null;
        found[8] = isThere ? Long.valueOf(numbers.last()) : null;
        found[9] = isThere ? Long.valueOf(firstMs) : null;
        found[10] = isThere ? Long.valueOf(lastMs) : null;
        found[11] = newestLeastMs == Long.MAX_VALUE ? null : Long.valueOf(newestLeastMs);
        found[12] = numbers.array();
        for (int at = 0; at <= SPREADS; at++) {
            found[13 + 2 * at] = most[at] == NONE ? null : Long.valueOf(least[at]);
            found[14 + 2 * at] = orNull(most[at]);
        }
        return new GenericInternalRow(found);
    }

    static Long orNull(long value) {
        return value == NONE ? null : Long.valueOf(value);
    }

    public int compareTo(Object other) {
        return name.compareTo(((Speaker) other).name);
    }
}
