package io.seawall.audit;

import java.util.ArrayList;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/** What one run of an emitter says of one log. */
final class Speaker implements Comparable {
    static final int SPREADS = 5; // epoch, the replica's broker, life, log start, local start
    static final int MARK = SPREADS; // the watermark's own spread comes behind those
    private static final long NONE = EventRow.NONE;
    private static final long UNSAID = Long.MIN_VALUE + 1; // what no row says

    final Name name;
    long falls = 0;
    private long events = 0;
    private long plain = 0;
    private boolean isWhole = true; // with its readings
    private long newestLeastMs = Long.MAX_VALUE;
    private long epoch = UNSAID; // of the event before, as the next ones
    private long replica = UNSAID;
    private long life = UNSAID;
    private long start = UNSAID;
    private long localStart = UNSAID;
    private final long[] least = new long[SPREADS + 1]; // those five, and the watermark
    private final long[] most = new long[SPREADS + 1];
    private ArrayList stretches = new ArrayList(1);
    private Stretch last;

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

    /** Nothing but a look, at what is to be looked at soon. */
    long lookAt() {
        return events + (last == null ? 0 : last.lookAt());
    }

    /** What comes back is about how much more is held. */
    long take(TaskDigest.Said said, boolean isAudited) {
        events++;
        plain += said.isPlain && isAudited ? 1 : 0;
        newestLeastMs = said.newestMs == EventRow.NONE ? newestLeastMs : Math.min(newestLeastMs, said.newestMs);
        stand(said.epoch, said.replica, said.life, said.start, said.localStart);
        if (said.number == EventRow.NONE) {
            return 0;
        }
        long more = 8;
        if (last == null || !last.goesOn(said.number, said.seq, said.observedMs)) {
            last = new Stretch(said.number, said.seq, said.observedMs);
            stretches.add(last);
            more = 160;
        }
        last.take(said.number, said.seq, said.observedMs, said.watermark);
        return more;
    }

    /** Nearly always as before. */
    private void stand(long nowEpoch, long nowReplica, long nowLife, long nowStart, long nowLocalStart) {
        if (nowEpoch == epoch
            && nowReplica == replica
            && nowLife == life
            && nowStart == start
            && nowLocalStart == localStart) {
            return;
        }
        epoch = nowEpoch;
        replica = nowReplica;
        life = nowLife;
        start = nowStart;
        localStart = nowLocalStart;
        spread(0, epoch);
        spread(1, replica);
        spread(2, life);
        spread(3, start);
        spread(4, localStart);
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
