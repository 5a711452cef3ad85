package io.seawall.audit;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.seawall.ingest.PlainEvents;
import java.io.IOException;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * What one row says, of its columns and of its body, one row after another.
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
    private static final int COLUMNS = 20;

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
    private static final int LIVES_AT_HAND = 64;

    // Of the row that was read last.
    int cluster; // of `clusters`; so is `component`
    int broker;
    int component;
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
    final Texts clusters = new Texts();
    final Texts components = new Texts();
    final Texts topicIds = new Texts();
    final Texts topics = new Texts();
    private final Texts kindNames = new Texts();
    private final int[] places;
    private final PlainEvents.Kept own;
    private Kinds.Kind[] kindsByName = new Kinds.Kind[16];
    private final Life[] atHand = new Life[LIVES_AT_HAND];
    private final Ends directory = new Ends();
    private final ObjectMapper json = new ObjectMapper();
    private final ColumnVector[] columns = new ColumnVector[COLUMNS];
    private int row;

    EventRow(Kinds kinds, int[] places) {
        this.kinds = kinds;
        this.places = places;
        own = kinds.plain == null ? null : kinds.plain.nothing();
        for (int n = 0; n < LIVES_AT_HAND; n++) {
            atHand[n] = new Life();
        }
    }

    void open(ColumnarBatch batch) {
        for (int column = 0; column < COLUMNS; column++) {
            columns[column] = batch.column(places[column]);
        }
        clusters.open(columns[CLUSTER]);
        components.open(columns[COMPONENT]);
        topicIds.open(columns[TOPIC_ID]);
        topics.open(columns[TOPIC]);
        kindNames.open(columns[KIND]);
    }

    /** Bytes of texts, about. */
    long held() {
        return clusters.held + components.held + topicIds.held + topics.held + kindNames.held;
    }

    /** Their numbers are others from here on. */
    void forgetTexts() {
        clusters.forget();
        components.forget();
        topicIds.forget();
        topics.forget();
        kindNames.forget();
        kindsByName = new Kinds.Kind[16];
    }

    /** The one at this place of the batch. */
    void read(int place) {
        row = place;
        cluster = clusters.at(row);
        broker = columns[BROKER].getInt(row);
        component = components.at(row);
        incarnation = columns[INCARNATION].getLong(row);
        seq = columns[SEQ].getLong(row);
        observedMs = columns[OBSERVED_MS].getLong(row);
        long kafkaMs = number(KAFKA_MS);
        aheadMs = kafkaMs == NONE ? NONE : observedMs - kafkaMs;
        isRead = columns[IS_READ].getBoolean(row);
        hasLog = !isNull(LOG_ID);
        logSeq = number(LOG_SEQ);
        kind = kindOf(kindNames.at(row));
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
        long found = hash(components.text(component), XXH64.hashInt(broker, SEED));
        return XXH64.hashLong(seq, XXH64.hashLong(incarnation, found));
    }

    long content() {
        long found = hash(text(EVENT_ID), hash(text(KIND), SEED));
        found = XXH64.hashLong(columns[OCCURRED_MS].getLong(row), found);
        found = hash(text(TOPIC), hash(text(TOPIC_ID), found));
        found = isNull(PARTITION) ? found : XXH64.hashInt(partition(), found);
        found = isNull(LEADER_EPOCH) ? found : XXH64.hashInt(columns[LEADER_EPOCH].getInt(row), found);
        return hash(text(BODY), found);
    }

    boolean follows() {
        return !isNull(FOLLOWS_INCARNATION) && !isNull(FOLLOWS_LAST_SEQ);
    }

    long follows(int column) {
        return columns[column].getLong(row);
    }

    /** Of `topicIds`; the next one, of `topics`. */
    int topicId() {
        return topicIds.at(row);
    }

    int topic() {
        return topics.at(row);
    }

    int partition() {
        return columns[PARTITION].getInt(row);
    }

    /** What `excuse` asks of each event by itself, but what it must agree with; and what must agree. */
    private void readOwn() {
        boolean hasEpoch = !isNull(LEADER_EPOCH);
        int leaderEpoch = hasEpoch ? columns[LEADER_EPOCH].getInt(row) : -1;
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
        life = lifeOf(replicaIncarnation);
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
        boolean isSane = newestMs == NONE || newestMs <= columns[OCCURRED_MS].getLong(row) + kinds.aheadMaxMs;
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

    private boolean isNull(int column) {
        return columns[column].isNullAt(row);
    }

    private UTF8String text(int column) {
        return isNull(column) ? null : columns[column].getUTF8String(row);
    }

    private long number(int column) {
        return isNull(column) ? NONE : columns[column].getLong(row);
    }

    private Kinds.Kind kindOf(int name) {
        if (name >= kindsByName.length) {
            kindsByName = (Kinds.Kind[]) Arrays.copyOf(kindsByName, 2 * name);
        }
        if (kindsByName[name] == null) {
            kindsByName[name] = kinds.of(kindNames.text(name));
        }
        return kindsByName[name];
    }

    /** A hash of all that names it; few are said again and again. */
    private long lifeOf(long replicaIncarnation) {
        if (!own.has(OWN_DIRECTORY)) {
            return hashOfLife(replicaIncarnation, null);
        }
        UTF8String of = own.text(OWN_DIRECTORY);
        directory.set(of);
        Life known = atHand[(int) (directory.last >>> 8 ^ replica) & (LIVES_AT_HAND - 1)];
        boolean isIt = known.replica == replica
            && known.incarnation == replicaIncarnation
            && known.directory.areThoseOf(directory)
            && directory.areAll();
        if (!isIt) {
            known.hash = hashOfLife(replicaIncarnation, of);
            known.replica = replica;
            known.incarnation = replicaIncarnation;
            known.directory.set(of);
        }
        return known.hash;
    }

    private long hashOfLife(long replicaIncarnation, UTF8String of) {
        long found = hash(of, replica == NONE ? SEED : XXH64.hashInt((int) replica, SEED));
        return replicaIncarnation == NONE ? found : XXH64.hashLong(replicaIncarnation, found);
    }

    private static long hash(UTF8String text, long seed) {
        if (text == null) {
            return seed;
        }
        return XXH64.hashUnsafeBytes(text.getBaseObject(), text.getBaseOffset(), text.numBytes(), seed);
    }

    /** One replica on one disk. */
    static final class Life {
        final Ends directory = new Ends();
        long replica = NONE;
        long incarnation = NONE;
        long hash = 0;
    }
}
