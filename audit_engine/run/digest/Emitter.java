package io.seawall.audit;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;

/** Of one emitter's run: counts of all rows, and of what was observed in time its numbers. */
final class Emitter {
    private static final int COLUMNS = 21;

    final Name name;
    final int number; // among a task's emitters
    final Ranges elsewhere = new Ranges(); // numbers of logs that are not to be told which
    private final int cluster; // as the task's rows have it; so is `component`
    private final int component;
    private final Words words = new Words();
    private final Longs follows = new Longs();
    private long events = 0;
    private long left = 0;
    private long shared = 0;
    private long retirements = 0;
    private long unread = 0;
    private long aheadMs = EventRow.NONE;
    private long firstMs = Long.MAX_VALUE;
    private long lastMs = EventRow.NONE;
    private long toldTo = EventRow.NONE;
    private boolean watchesDisks = false;

    /** Who says `row`. */
    Emitter(Name name, int number, EventRow row) {
        this.name = name;
        this.number = number;
        cluster = row.cluster;
        component = row.component;
    }

    boolean is(EventRow row) {
        return component == row.component
            && cluster == row.cluster
            && name.broker == row.broker
            && name.incarnation == row.incarnation;
    }

    void count(EventRow row, boolean isDue) {
        events++;
        left += isDue ? 0 : 1;
        shared += row.isShared() ? 1 : 0;
        retirements += row.kind.isRetirement ? 1 : 0;
        unread += row.isRead ? 0 : 1;
        firstMs = Math.min(firstMs, row.observedMs);
        aheadMs = Math.max(aheadMs, row.aheadMs);
    }

    long hear(EventRow row) {
        lastMs = Math.max(lastMs, row.observedMs);
        watchesDisks |= row.watchesDisks();
        toldTo = Math.max(toldTo, row.toldTo);
        if (row.follows()) {
            follows.addPair(row.follows(EventRow.FOLLOWS_INCARNATION), row.follows(EventRow.FOLLOWS_LAST_SEQ));
        }
        return words.take(row.seq);
    }

    InternalRow row() {
        Object[] found = new Object[COLUMNS];
        found[0] = Integer.valueOf(TaskDigest.OF_EMITTER);
        found[1] = name.cluster;
        found[2] = Integer.valueOf(name.broker);
        found[3] = name.component;
        found[4] = Long.valueOf(name.incarnation);
        found[5] = Long.valueOf(events);
        found[6] = Long.valueOf(left);
        found[7] = Long.valueOf(shared);
        found[8] = Long.valueOf(retirements);
        found[9] = Long.valueOf(unread);
        found[10] = Speaker.orNull(aheadMs);
        found[11] = Long.valueOf(firstMs);
        found[12] = Speaker.orNull(lastMs);
        found[13] = Speaker.orNull(toldTo);
        found[14] = Boolean.valueOf(watchesDisks);
        found[15] = follows.array();
        words.put(found, 16); // whole, words, bits, counts
        found[20] = elsewhere.array();
        return new GenericInternalRow(found);
    }
}
