package io.seawall.audit;

import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A slice of evidence, gone through once: what it comes to for each emitter, each log, and each act.
 *
 * `call` makes rows of what one task sees (the constants below say of which columns, `spark.py` names both);
 * `merged` makes one log of all that tasks saw of it. Of a log, each speaker's events are kept as stretches: numbers
 * that follow each other in the order in which they are judged, and what they read, in few bytes.
 * So whether a day stands in line, and whether a watermark falls, is known without a sort of its rows.
 *
 * Invariant: how rows lie in tasks, and in which order, changes nothing of what is merged.
 * Compiled by Janino: no lambdas, no inferred type arguments.
 */
public final class SliceDigest implements FlatMapFunction, Serializable {
    // What comes in.
    static final int CLUSTER = 0;
    static final int BROKER = 1;
    static final int COMPONENT = 2;
    static final int INCARNATION = 3;
    static final int SEQ = 4;
    static final int OBSERVED_MS = 5;
    static final int AHEAD_MS = 6;
    static final int IS_SHARED = 7;
    static final int IS_RETIREMENT = 8;
    static final int IS_READ = 9;
    static final int WATCHES_DISKS = 10;
    static final int FOLLOWS_INCARNATION = 11;
    static final int FOLLOWS_LAST_SEQ = 12;
    static final int TOLD_TO = 13;
    static final int ACT = 14;
    static final int TELLER = 15;
    static final int CONTENT = 16;
    static final int HAS_LOG = 17;
    static final int TOPIC_ID = 18;
    static final int PARTITION = 19;
    static final int TOPIC = 20; // null where it is not audited
    static final int LOG_SEQ = 21;
    static final int IS_PLAIN = 22;
    static final int NEWEST_MS = 23;
    static final int WATERMARK = 24;
    static final int SPREAD = 25; // and behind it: epoch, the replica's broker, life, log start, local start

    // What goes out.
    static final int OF_EMITTER = 0;
    static final int OF_LOG = 1;
    static final int OF_ACTS = 2;
    static final int COLUMNS = 27;

    static final int SPREADS = 5;
    static final int MARK = SPREADS; // the watermark's own spread comes behind those
    static final int ACTS_AT_ONCE = 4096;
    static final long NONE = Long.MIN_VALUE;
    static final long UNSAID = Long.MIN_VALUE + 1; // what no row says

    private final long asOfMs;
    private final long heldMax; // bytes, about; what is held at once of a task's rows
    private final long readingsMax; // bytes, of one log in one task; of more, nobody is told to be in line

    public SliceDigest(long asOfMs, long heldMax, long readingsMax) {
        this.asOfMs = asOfMs;
        this.heldMax = heldMax;
        this.readingsMax = readingsMax;
    }

    public Iterator call(Object rows) {
        return new Digest((Iterator) rows, asOfMs, heldMax, readingsMax);
    }

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
        long highest = NONE;
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
            all[first].spread(MARK, heads[first].watermark);
            if (heads[first].watermark < highest) {
                all[first].falls++;
            } else {
                highest = heads[first].watermark;
            }
            heads[first].next();
        }
    }

    static Long orNull(long value) {
        return value == NONE ? null : Long.valueOf(value);
    }

    static long said(InternalRow row, int column) {
        return row.isNullAt(column) ? NONE : row.getLong(column);
    }

    static UTF8String keep(UTF8String text) {
        return text == null ? null : text.clone();
    }

    static int hashOf(UTF8String text) {
        return text == null ? 0 : text.hashCode();
    }

    static boolean areSame(UTF8String one, UTF8String other) {
        return one == null ? other == null : one.equals(other);
    }

    /** One task's rows, as it goes through them. */
    static final class Digest implements Iterator {
        private final Iterator rows;
        private final long asOfMs;
        private final long heldMax;
        private final long readingsMax;
        private final ArrayDeque out = new ArrayDeque();
        private final Map clusters = new HashMap(); // each name once
        private final Map emitters = new HashMap();
        private final Emitter[] recent = new Emitter[64];
        private Logs logs = new Logs();
        private final Map acts = new HashMap(); // by cluster
        private final Name asked = new Name();
        private long held = 0;

        Digest(Iterator rows, long asOfMs, long heldMax, long readingsMax) {
            this.rows = rows;
            this.asOfMs = asOfMs;
            this.heldMax = heldMax;
            this.readingsMax = readingsMax;
        }

        public boolean hasNext() {
            while (out.isEmpty() && rows.hasNext()) {
                while (held < heldMax && rows.hasNext()) {
                    take((InternalRow) rows.next());
                }
                giveOut();
            }
            return !out.isEmpty();
        }

        public Object next() {
            return out.removeFirst();
        }

        public void remove() {
            throw new UnsupportedOperationException();
        }

        private void take(InternalRow row) {
            Emitter emitter = emitter(row);
            long observedMs = row.getLong(OBSERVED_MS);
            boolean isDue = observedMs <= asOfMs;
            boolean hasLog = row.getBoolean(HAS_LOG);
            long logSeq = row.isNullAt(LOG_SEQ) ? NONE : row.getLong(LOG_SEQ);
            boolean isRead = row.getBoolean(IS_READ);
            emitter.count(row, observedMs, isDue, isRead);
            if (isDue) {
                held += emitter.hear(row, observedMs);
                if (logSeq != NONE && !(isRead && hasLog)) {
                    held += emitter.elsewhere.take(logSeq);
                }
                if (!row.isNullAt(ACT)) {
                    Acts known = ofCluster(emitter.name.cluster);
                    held += known.take(row.getLong(ACT), row.getLong(TELLER), row.getLong(CONTENT));
                }
            }
            if (hasLog) {
                int before = logs.size;
                Log log = logs.of(emitter.name.cluster, row.getUTF8String(TOPIC_ID), row.getInt(PARTITION));
                held += logs.size == before ? 0 : 256;
                if (!row.isNullAt(TOPIC)) {
                    log.call(row.getUTF8String(TOPIC));
                }
                if (isDue) {
                    held += log.speaker(emitter).take(row, observedMs, isRead ? logSeq : NONE);
                }
            }
        }

        private Emitter emitter(InternalRow row) {
            UTF8String cluster = row.getUTF8String(CLUSTER);
            UTF8String component = row.getUTF8String(COMPONENT);
            int broker = row.getInt(BROKER);
            long incarnation = row.getLong(INCARNATION);
            int place = (broker + 7 * component.numBytes()) & (recent.length - 1);
            Emitter found = recent[place];
            if (found != null && found.name.is(cluster, broker, component, incarnation)) {
                return found;
            }
            asked.cluster = cluster;
            asked.broker = broker;
            asked.component = component;
            asked.incarnation = incarnation;
            found = (Emitter) emitters.get(asked);
            if (found == null) {
                Name name = asked.copied();
                UTF8String known = (UTF8String) clusters.get(cluster);
                if (known == null) {
                    clusters.put(name.cluster, name.cluster);
                } else {
                    name.cluster = known;
                }
                found = new Emitter(name);
                emitters.put(name, found);
                held += 512;
            }
            recent[place] = found;
            return found;
        }

        private Acts ofCluster(UTF8String cluster) {
            Acts found = (Acts) acts.get(cluster);
            if (found == null) {
                found = new Acts();
                acts.put(cluster, found);
            }
            return found;
        }

        private void giveOut() {
            for (Iterator each = emitters.values().iterator(); each.hasNext(); ) {
                out.add(((Emitter) each.next()).row());
            }
            logs.addRows(readingsMax, out);
            for (Iterator each = acts.entrySet().iterator(); each.hasNext(); ) {
                Map.Entry of = (Map.Entry) each.next();
                ((Acts) of.getValue()).addRows((UTF8String) of.getKey(), out);
            }
            emitters.clear();
            logs = new Logs();
            acts.clear();
            Arrays.fill(recent, null);
            held = 0;
        }
    }

    /** Who says something. */
    static final class Name implements Comparable {
        UTF8String cluster;
        int broker;
        UTF8String component;
        long incarnation;

        Name copied() {
            Name found = new Name();
            found.cluster = keep(cluster);
            found.broker = broker;
            found.component = component.clone();
            found.incarnation = incarnation;
            return found;
        }

        boolean is(UTF8String ofCluster, int ofBroker, UTF8String ofComponent, long ofIncarnation) {
            return broker == ofBroker
                && incarnation == ofIncarnation
                && component.equals(ofComponent)
                && areSame(cluster, ofCluster);
        }

        public int hashCode() {
            int found = (int) (incarnation ^ (incarnation >>> 32));
            found = 31 * found + component.hashCode();
            return 31 * (31 * found + broker) + hashOf(cluster);
        }

        public boolean equals(Object of) {
            Name other = (Name) of;
            return is(other.cluster, other.broker, other.component, other.incarnation);
        }

        /** Of one cluster, as the machine has events of one moment. */
        public int compareTo(Object of) {
            Name other = (Name) of;
            if (broker != other.broker) {
                return broker < other.broker ? -1 : 1;
            }
            int found = component.compareTo(other.component);
            return found != 0 ? found : Long.compare(incarnation, other.incarnation);
        }
    }

    /** A text by its first, second and last eight bytes, which are all of one that is neither short nor long. */
    static final class Ends {
        long first;
        long second;
        long last;
        int length;

        void set(UTF8String text) {
            Object base = text.getBaseObject();
            long at = text.getBaseOffset();
            length = text.numBytes();
            first = length >= 8 ? Platform.getLong(base, at) : text.hashCode();
            second = length >= 16 ? Platform.getLong(base, at + 8) : 0;
            last = length >= 8 ? Platform.getLong(base, at + length - 8) : 0;
        }

        boolean areThoseOf(Ends other) {
            return first == other.first && last == other.last && second == other.second && length == other.length;
        }

        boolean areAll() {
            return length >= 8 && length <= 24;
        }

        long hash() {
            long found = first * 0x9E3779B97F4A7C15L + second;
            found = (found ^ (found >>> 29)) * 0xBF58476D1CE4E5B9L + last;
            return (found ^ (found >>> 32)) * 0x94D049BB133111EBL + length;
        }
    }

    /** By name: of many logs, each row is about another, and what is looked at to find it is not near by. */
    static final class Logs {
        int size = 0;
        private Log[] table = new Log[1024];
        private long[] hashes = new long[1024];
        private final Ends asked = new Ends();

        /** `cluster` is the same object for all of its logs. */
        Log of(UTF8String cluster, UTF8String topicId, int partition) {
            asked.set(topicId);
            long hash = asked.hash() + partition * 0x9E3779B97F4A7C15L;
            hash ^= hash >>> 32;
            int place = (int) hash & (table.length - 1);
            while (table[place] != null) {
                if (hashes[place] == hash && table[place].is(cluster, topicId, asked, partition)) {
                    return table[place];
                }
                place = (place + 1) & (table.length - 1);
            }
            if (2 * ++size > table.length) {
                grow();
                place = freePlace(hash);
            }
            table[place] = new Log(cluster, topicId.clone(), partition);
            hashes[place] = hash;
            return table[place];
        }

        private int freePlace(long hash) {
            int place = (int) hash & (table.length - 1);
            while (table[place] != null) {
                place = (place + 1) & (table.length - 1);
            }
            return place;
        }

        private void grow() {
            Log[] oldTable = table;
            long[] oldHashes = hashes;
            table = new Log[2 * oldTable.length];
            hashes = new long[table.length];
            for (int old = 0; old < oldTable.length; old++) {
                if (oldTable[old] != null) {
                    int place = freePlace(oldHashes[old]);
                    table[place] = oldTable[old];
                    hashes[place] = oldHashes[old];
                }
            }
        }

        void addRows(long readingsMax, ArrayDeque out) {
            for (int place = 0; place < table.length; place++) {
                if (table[place] != null) {
                    out.add(table[place].row(readingsMax));
                }
            }
        }
    }

    /** Of one emitter's run: counts of all rows, and of what was observed in time its numbers. */
    static final class Emitter {
        final Name name;
        final Ranges elsewhere = new Ranges(); // numbers of logs that are not to be told which
        private final Words words = new Words();
        private final Longs follows = new Longs();
        private long events = 0;
        private long left = 0;
        private long shared = 0;
        private long retirements = 0;
        private long unread = 0;
        private long aheadMs = NONE;
        private long firstMs = Long.MAX_VALUE;
        private long lastMs = NONE;
        private long toldTo = NONE;
        private boolean watchesDisks = false;

        Emitter(Name name) {
            this.name = name;
        }

        void count(InternalRow row, long observedMs, boolean isDue, boolean isRead) {
            events++;
            left += isDue ? 0 : 1;
            shared += row.getBoolean(IS_SHARED) ? 1 : 0;
            retirements += row.getBoolean(IS_RETIREMENT) ? 1 : 0;
            unread += isRead ? 0 : 1;
            firstMs = Math.min(firstMs, observedMs);
            if (!row.isNullAt(AHEAD_MS)) {
                aheadMs = Math.max(aheadMs, row.getLong(AHEAD_MS));
            }
        }

        long hear(InternalRow row, long observedMs) {
            lastMs = Math.max(lastMs, observedMs);
            watchesDisks |= row.getBoolean(WATCHES_DISKS);
            if (!row.isNullAt(TOLD_TO)) {
                toldTo = Math.max(toldTo, row.getLong(TOLD_TO));
            }
            if (!row.isNullAt(FOLLOWS_INCARNATION) && !row.isNullAt(FOLLOWS_LAST_SEQ)) {
                follows.addPair(row.getLong(FOLLOWS_INCARNATION), row.getLong(FOLLOWS_LAST_SEQ));
            }
            return words.take(row.getLong(SEQ));
        }

        InternalRow row() {
            Object[] found = new Object[COLUMNS];
            found[0] = Integer.valueOf(OF_EMITTER);
            found[1] = name.cluster;
            found[2] = Integer.valueOf(name.broker);
            found[3] = name.component;
            found[4] = Long.valueOf(name.incarnation);
            found[5] = Long.valueOf(events);
            found[6] = Long.valueOf(left);
            found[7] = Long.valueOf(shared);
            found[8] = Long.valueOf(retirements);
            found[9] = Long.valueOf(unread);
            found[10] = orNull(aheadMs);
            found[11] = Long.valueOf(firstMs);
            found[12] = orNull(lastMs);
            found[13] = orNull(toldTo);
            found[14] = Boolean.valueOf(watchesDisks);
            found[15] = follows.array();
            words.put(found, 16); // words, bits, counts
            found[19] = elsewhere.array();
            return new GenericInternalRow(found);
        }
    }

    static final class Log {
        private final UTF8String cluster;
        private final UTF8String topicId;
        private final Ends ends = new Ends();
        private final int partition;
        private UTF8String topic;
        private final Ends ofTopic = new Ends();
        private final Ends asked = new Ends();
        private Emitter[] emitters = new Emitter[4];
        private Speaker[] speakers = new Speaker[4];
        private int count = 0;

        Log(UTF8String cluster, UTF8String topicId, int partition) {
            this.cluster = cluster;
            this.topicId = topicId;
            this.partition = partition;
            ends.set(topicId);
        }

        boolean is(UTF8String ofCluster, UTF8String id, Ends ofId, int number) {
            return partition == number
                && cluster == ofCluster
                && ends.areThoseOf(ofId)
                && (ends.areAll() || topicId.equals(id));
        }

        /** The greatest of its names. */
        void call(UTF8String name) {
            asked.set(name);
            if (topic != null && asked.areThoseOf(ofTopic) && (asked.areAll() || topic.equals(name))) {
                return;
            }
            if (topic == null || topic.compareTo(name) < 0) {
                topic = name.clone();
                ofTopic.set(topic);
            }
        }

        Speaker speaker(Emitter emitter) {
            for (int at = 0; at < count; at++) {
                if (emitters[at] == emitter) {
                    return speakers[at];
                }
            }
            if (count == speakers.length) {
                emitters = (Emitter[]) Arrays.copyOf(emitters, 2 * count);
                speakers = (Speaker[]) Arrays.copyOf(speakers, 2 * count);
            }
            emitters[count] = emitter;
            speakers[count] = new Speaker(emitter.name);
            return speakers[count++];
        }

        InternalRow row(long readingsMax) {
            long readings = 0;
            for (int at = 0; at < count; at++) {
                readings += speakers[at].readingBytes();
            }
            Packed packed = new Packed(new byte[64]);
            packed.write(count);
            for (int at = 0; at < count; at++) {
                speakers[at].pack(packed, readings <= readingsMax);
            }
            Object[] found = new Object[COLUMNS];
            found[0] = Integer.valueOf(OF_LOG);
            found[1] = cluster;
            found[20] = topicId;
            found[21] = Integer.valueOf(partition);
            found[22] = topic;
            found[23] = packed.written();
            return new GenericInternalRow(found);
        }
    }

    /** What one run of an emitter says of one log. */
    static final class Speaker implements Comparable {
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

        /** `logSeq`: NONE where it has no number of this log. What comes back is about how much more is held. */
        long take(InternalRow row, long observedMs, long logSeq) {
            events++;
            if (row.getBoolean(IS_PLAIN) && !row.isNullAt(TOPIC)) {
                plain++;
            }
            if (!row.isNullAt(NEWEST_MS)) {
                newestLeastMs = Math.min(newestLeastMs, row.getLong(NEWEST_MS));
            }
            stand(
                said(row, SPREAD),
                said(row, SPREAD + 1),
                said(row, SPREAD + 2),
                said(row, SPREAD + 3),
                said(row, SPREAD + 4));
            if (logSeq == NONE) {
                return 0;
            }
            long watermark = said(row, WATERMARK);
            long seq = row.getLong(SEQ);
            long more = 8;
            if (last == null || !last.goesOn(logSeq, seq, observedMs)) {
                last = new Stretch(logSeq, seq, observedMs);
                stretches.add(last);
                more = 160;
            }
            last.take(logSeq, seq, observedMs, watermark);
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

        public int compareTo(Object other) {
            return name.compareTo(((Speaker) other).name);
        }
    }

    /** Numbers that follow each other, in the order in which they are judged; packed is what they read: by how much
     * each reading is later, and higher, than the one before it. */
    static final class Stretch extends Packed implements Comparable {
        final long firstNumber;
        final long firstMs;
        long lastNumber;
        long lastMs;
        private final long firstSeq;
        private long lastSeq;
        private long readMs;
        private long watermark = 0;

        Stretch(long number, long seq, long atMs) {
            super(new byte[16]);
            firstNumber = number;
            firstSeq = seq;
            firstMs = atMs;
            readMs = atMs;
        }

        Stretch(Packed packed) {
            super(null);
            firstNumber = packed.read();
            lastNumber = firstNumber + packed.read();
            firstSeq = packed.read();
            lastSeq = packed.read();
            firstMs = packed.read();
            lastMs = packed.read();
            setWritten(packed.readBytes());
        }

        void pack(Packed packed, boolean withReadings) {
            packed.write(firstNumber);
            packed.write(lastNumber - firstNumber);
            packed.write(firstSeq);
            packed.write(lastSeq);
            packed.write(firstMs);
            packed.write(lastMs);
            packed.writeBytes(withReadings ? written() : new byte[0]);
        }

        boolean goesOn(long number, long seq, long atMs) {
            return number == lastNumber + 1 && seq > lastSeq && atMs >= lastMs;
        }

        boolean isFollowedBy(Stretch other) {
            return goesOn(other.firstNumber, other.firstSeq, other.firstMs);
        }

        void take(long number, long seq, long atMs, long mark) {
            lastNumber = number;
            lastSeq = seq;
            lastMs = atMs;
            if (mark != NONE) {
                write(atMs - readMs);
                write(mark - watermark);
                readMs = atMs;
                watermark = mark;
            }
        }

        public int compareTo(Object of) {
            Stretch other = (Stretch) of;
            int found = Long.compare(firstNumber, other.firstNumber);
            return found != 0 ? found : Long.compare(lastNumber, other.lastNumber);
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

    /** Of each 64 numbers which came, and how many rows. */
    static final class Words {
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

        void put(Object[] row, int column) {
            long[][] found = new long[3][size];
            int next = 0;
            for (int place = 0; place < words.length; place++) {
                if (counts[place] != 0) {
                    found[0][next] = words[place];
                    found[1][next] = bits[place];
                    found[2][next] = counts[place];
                    next++;
                }
            }
            for (int each = 0; each < 3; each++) {
                row[column + each] = UnsafeArrayData.fromPrimitiveArray(found[each]);
            }
        }
    }

    /** A set of numbers, as starts and ends, one behind the other. */
    static final class Ranges {
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

    /** What was done, by whom it was told, and in which words. */
    static final class Acts {
        private final Longs all = new Longs();

        long take(long id, long teller, long content) {
            all.add(id);
            all.add(teller);
            all.add(content);
            return 24;
        }

        void addRows(UTF8String cluster, ArrayDeque out) {
            int count = all.size / 3;
            for (int from = 0; from < count; from += ACTS_AT_ONCE) {
                int length = Math.min(ACTS_AT_ONCE, count - from);
                Object[] row = new Object[COLUMNS];
                row[0] = Integer.valueOf(OF_ACTS);
                row[1] = cluster;
                for (int column = 0; column < 3; column++) {
                    long[] of = new long[length];
                    for (int at = 0; at < length; at++) {
                        of[at] = all.of[3 * (from + at) + column];
                    }
                    row[24 + column] = UnsafeArrayData.fromPrimitiveArray(of);
                }
                out.add(new GenericInternalRow(row));
            }
        }
    }

    static final class Longs {
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

    /** Whole numbers behind each other, small ones, of either sign, in few bytes. */
    static class Packed {
        private byte[] bytes;
        private int at = 0;

        Packed(byte[] bytes) {
            this.bytes = bytes;
        }

        void write(long value) {
            if (at + 10 > bytes.length) {
                bytes = Arrays.copyOf(bytes, 2 * bytes.length + 10);
            }
            long left = (value << 1) ^ (value >> 63);
            while ((left & ~0x7FL) != 0) {
                bytes[at++] = (byte) ((left & 0x7F) | 0x80);
                left >>>= 7;
            }
            bytes[at++] = (byte) left;
        }

        long read() {
            long found = 0;
            for (int shift = 0; ; shift += 7) {
                byte each = bytes[at++];
                found |= (long) (each & 0x7F) << shift;
                if (each >= 0) {
                    return (found >>> 1) ^ -(found & 1);
                }
            }
        }

        void writeBytes(byte[] value) {
            write(value.length);
            if (at + value.length > bytes.length) {
                bytes = Arrays.copyOf(bytes, 2 * (at + value.length));
            }
            System.arraycopy(value, 0, bytes, at, value.length);
            at += value.length;
        }

        byte[] readBytes() {
            int length = (int) read();
            at += length;
            return Arrays.copyOfRange(bytes, at - length, at);
        }

        byte[] written() {
            return Arrays.copyOf(bytes, at);
        }

        int size() {
            return at;
        }

        void setWritten(byte[] value) {
            bytes = value;
            at = value.length;
        }

        boolean isAtEnd() {
            return at == bytes.length;
        }
    }
}
