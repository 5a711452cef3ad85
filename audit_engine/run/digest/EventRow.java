package io.seawall.audit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.seawall.ingest.PlainEvents;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What one row says, of its columns and of its body, one row after another. Texts stay the row's own.
 *
 * Hashes are Spark's `xxhash64` of the same columns: what is told apart here by one is looked for elsewhere by the other.
 */
final class EventRow {
    // The columns that it is asked for, in this order.
    static final int CLUSTER = 0;
    static final int BROKER = 1;
    static final int COMPONENT = 2;
    static final int INCARNATION = 3;
    static final int SEQ = 4;
    static final int OBSERVED_MS = 5;
    static final int KAFKA_MS = 6;
    static final int KIND = 7;
    static final int EVENT_ID = 8;
    static final int IS_READ = 9;
    static final int FOLLOWS_INCARNATION = 10;
    static final int FOLLOWS_LAST_SEQ = 11;
    static final int LOG_ID = 12;
    static final int TOPIC_ID = 13;
    static final int TOPIC = 14;
    static final int PARTITION = 15;
    static final int LOG_SEQ = 16;
    static final int LEADER_EPOCH = 17;
    static final int OCCURRED_MS = 18;
    static final int BODY = 19;

    // What is cut out of a body, in this order.
    static final int OWN_SOURCE = 0;
    static final int OWN_DIRECTORY = 1;
    static final int OWN_BROKER = 2;
    static final int OWN_INCARNATION = 3;
    static final int OWN_START = 4;
    static final int OWN_LOCAL_START = 5;
    static final int OWN_WATERMARK = 6;
    static final int OWN_SIZE = 7;
    static final int OWN_BASE = 8;
    static final int OWN_END = 9;
    static final int OWN_DATA_END = 10;
    static final int OWN_COUNT = 11;
    static final int OWN_NEWEST_MS = 12;

    static final long NONE = Long.MIN_VALUE;
    private static final long SEED = 42;
    private static final int KINDS_AT_HAND = 8;

    // Of the row that was read last.
    UTF8String cluster;
    int broker;
    UTF8String component;
    long incarnation;
    long seq;
    long observedMs;
    long aheadMs;
    boolean isRead;
    boolean hasLog;
    long logSeq;
    long toldTo; // how far a heartbeat says that it had counted
    Kinds.Kind kind;
    // Of one whose body is read; of any other, NONE.
    boolean isPlain;
    long newestMs;
    long watermark;
    long epoch;
    long replica;
    long life;
    long start;
    long localStart;

    final Kinds kinds;
    private final int[] places;
    private final PlainEvents.Kept own;
    private final Kinds.Kind[] atHand = new Kinds.Kind[KINDS_AT_HAND];
    private final Ends asked = new Ends();
    private final ObjectMapper json = new ObjectMapper();
    private InternalRow row;

    EventRow(Kinds kinds, int[] places) {
        this.kinds = kinds;
        this.places = places;
        own = kinds.plain == null ? null : kinds.plain.nothing();
    }

    void read(InternalRow of) {
        row = of;
        cluster = text(CLUSTER);
        broker = row.getInt(places[BROKER]);
        component = text(COMPONENT);
        incarnation = row.getLong(places[INCARNATION]);
        seq = row.getLong(places[SEQ]);
        observedMs = row.getLong(places[OBSERVED_MS]);
        long kafkaMs = number(KAFKA_MS);
        aheadMs = kafkaMs == NONE ? NONE : observedMs - kafkaMs;
        isRead = row.getBoolean(places[IS_READ]);
        hasLog = !row.isNullAt(places[LOG_ID]);
        logSeq = number(LOG_SEQ);
        kind = kindOf(text(KIND));
        toldTo = kind.isHeartbeat && !hasLog && isRead ? lastSeq() : NONE;
        if (hasLog) {
            readOwn();
        }
    }

    boolean isShared() {
        return kind.isShared && !hasLog;
    }

    boolean watchesDisks() {
        return kind.isBaseline && isRead;
    }

    boolean isAct() {
        return kind.isAct && isRead;
    }

    long act() {
        return hash(text(EVENT_ID), SEED);
    }

    long teller() {
        long found = XXH64.hashInt(broker, SEED);
        found = hash(component, found);
        return XXH64.hashLong(seq, XXH64.hashLong(incarnation, found));
    }

    long content() {
        long found = hash(text(EVENT_ID), hash(text(KIND), SEED));
        found = XXH64.hashLong(row.getLong(places[OCCURRED_MS]), found);
        found = hash(text(TOPIC), hash(text(TOPIC_ID), found));
        found = row.isNullAt(places[PARTITION]) ? found : XXH64.hashInt(row.getInt(places[PARTITION]), found);
        found = row.isNullAt(places[LEADER_EPOCH]) ? found : XXH64.hashInt(row.getInt(places[LEADER_EPOCH]), found);
        return hash(text(BODY), found);
    }

    boolean follows() {
        return !row.isNullAt(places[FOLLOWS_INCARNATION]) && !row.isNullAt(places[FOLLOWS_LAST_SEQ]);
    }

    long follows(int column) {
        return row.getLong(places[column]);
    }

    UTF8String topicId() {
        return text(TOPIC_ID);
    }

    UTF8String topic() {
        return text(TOPIC);
    }

    int partition() {
        return row.getInt(places[PARTITION]);
    }

    /** What `excuse` asks of each event by itself, but what it must agree with; and what must agree. */
    private void readOwn() {
        int epochPlace = places[LEADER_EPOCH];
        boolean hasEpoch = !row.isNullAt(epochPlace);
        int leaderEpoch = hasEpoch ? row.getInt(epochPlace) : -1;
        epoch = leaderEpoch >= 0 ? leaderEpoch : NONE;
        UTF8String body = kind.form != null && isRead ? text(BODY) : null;
        if (body == null || !kinds.plain.cut(kind.form, body, own)) {
            isPlain = false;
            life = SEED; // of nothing
            newestMs = watermark = replica = start = localStart = NONE;
            return;
        }
        replica = own(OWN_BROKER);
        start = own(OWN_START);
        localStart = own(OWN_LOCAL_START);
        watermark = own(OWN_WATERMARK);
        newestMs = own(OWN_NEWEST_MS);
        long replicaIncarnation = own(OWN_INCARNATION);
        boolean isKnown = replica != NONE && own.has(OWN_DIRECTORY) && replicaIncarnation != NONE && hasEpoch;
        life = replica == NONE ? SEED : XXH64.hashInt((int) replica, SEED);
        life = own.has(OWN_DIRECTORY) ? hash(own.text(OWN_DIRECTORY), life) : life;
        life = replicaIncarnation == NONE ? life : XXH64.hashLong(replicaIncarnation, life);
        boolean isSeen = own.is(OWN_SOURCE, kinds.logDir) && logSeq != NONE;
        isPlain = kind.isPlain && isSeen && isKnown && (kind.isReading ? reads() : closes());
        newestMs = kind.isClosed && newestMs >= 0 ? newestMs : NONE;
    }

    private boolean reads() {
        long size = own(OWN_SIZE);
        return start != NONE && watermark != NONE && (size == NONE || size > 0);
    }

    private boolean closes() {
        long end = own(OWN_END);
        long base = own(OWN_BASE);
        long dataEnd = own(OWN_DATA_END);
        long count = own(OWN_COUNT);
        boolean isFull = dataEnd == NONE || (end != NONE && dataEnd == end);
        boolean isCounted = count == NONE || (end != NONE && base != NONE && count == end - base);
        boolean isSane = newestMs == NONE || newestMs <= row.getLong(places[OCCURRED_MS]) + kinds.aheadMaxMs;
        return isFull && isCounted && isSane;
    }

    private long own(int piece) {
        return own.has(piece) ? own.number(piece) : NONE;
    }

    private long lastSeq() {
        UTF8String body = text(BODY);
        if (body == null) {
            return NONE;
        }
        try {
            JsonNode said = (JsonNode) json.readTree(body.toString()).get("last_seq");
            return said != null && said.isIntegralNumber() && said.canConvertToLong() ? said.asLong() + 1 : NONE;
        } catch (IOException isNoJson) {
            return NONE;
        }
    }

    private UTF8String text(int column) {
        int place = places[column];
        return row.isNullAt(place) ? null : row.getUTF8String(place);
    }

    private long number(int column) {
        int place = places[column];
        return row.isNullAt(place) ? NONE : row.getLong(place);
    }

    /** Few are said again and again. */
    private Kinds.Kind kindOf(UTF8String name) {
        asked.set(name);
        int place = (int) (asked.last >>> 8) & (KINDS_AT_HAND - 1);
        Kinds.Kind found = atHand[place];
        if (found == null || !asked.areAll() || !found.name.areThoseOf(asked)) {
            found = kinds.of(name);
            atHand[place] = found;
        }
        return found;
    }

    private static long hash(UTF8String text, long seed) {
        if (text == null) {
            return seed;
        }
        return XXH64.hashUnsafeBytes(text.getBaseObject(), text.getBaseOffset(), text.numBytes(), seed);
    }
}
