package io.seawall.audit;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * One task's rows, as it goes through them; it gives out rows.
 *
 * Of many logs, each row is about another, and nothing of it is near by: rows are taken some at a time, and what they
 * are added to is looked up for all of these before any is added, so that the machine waits for several at once.
 */
final class TaskDigest implements Iterator {
    // What goes out: of each row the first column.
    static final int OF_EMITTER = 0;
    static final int OF_LOG = 1;
    static final int OF_ACTS = 2;

    private static final int AT_ONCE = 128;

    private final Source.Batches batches;
    private final EventRow row;
    private final long asOfMs;
    private final long heldMax;
    private final long readingsMax;
    private final ArrayDeque out = new ArrayDeque();
    private final Map emitters = new HashMap();
    private final Emitter[] recent = new Emitter[64];
    private Speakers speakers;
    private final Map acts = new HashMap(); // by cluster
    private final Name asked = new Name();
    private final Said[] waiting = new Said[AT_ONCE];
    private int count = 0; // of those that wait
    private int at = 0; // of a batch
    private int size = 0;
    private boolean isAtEnd = false;
    private long held = 0;
    private long near; // so that looking ahead is for something

    TaskDigest(Source.Batches batches, EventRow row, long asOfMs, long heldMax, long readingsMax) {
        this.batches = batches;
        this.row = row;
        speakers = new Speakers(row);
        this.asOfMs = asOfMs;
        this.heldMax = heldMax;
        this.readingsMax = readingsMax;
        for (int n = 0; n < AT_ONCE; n++) {
            waiting[n] = new Said();
        }
    }

    public boolean hasNext() {
        while (out.isEmpty() && !isAtEnd) {
            while (held + row.held() < heldMax && !isAtEnd) {
                takeSome();
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

    private void takeSome() {
        if (at == size) {
            ColumnarBatch batch = batches.next();
            isAtEnd = batch == null;
            at = 0;
            size = isAtEnd ? 0 : batch.numRows();
            if (!isAtEnd) {
                row.open(batch);
            }
        }
        for (; at < size && count < AT_ONCE; at++) {
            if (batches.has(at)) {
                row.read(at);
                take();
            }
        }
        addThem();
    }

    private void take() {
        Emitter emitter = emitter();
        boolean isDue = row.observedMs <= asOfMs;
        emitter.count(row, isDue);
        if (isDue) {
            held += emitter.hear(row);
            if (row.logSeq != EventRow.NONE && !(row.isRead && row.hasLog)) {
                held += emitter.elsewhere.take(row.logSeq);
            }
            if (row.isAct()) {
                held += ofCluster(emitter.name.cluster).take(row.act(), row.teller(), row.content());
            }
        }
        if (row.hasLog) {
            waiting[count++].set(row, emitter, isDue);
        }
    }

    private void addThem() {
        for (int n = 0; n < count; n++) {
            near += speakers.lookFor(waiting[n].place);
        }
        for (int n = 0; n < count; n++) {
            near += speakers.lookNear(waiting[n].place);
        }
        for (int n = 0; n < count; n++) {
            Said said = waiting[n];
            int before = speakers.size;
            said.speaker = speakers.of(said);
            held += speakers.size == before ? 0 : 512;
        }
        for (int n = 0; n < count; n++) {
            near += speakers.lookAt(waiting[n].speaker);
        }
        for (int n = 0; n < count; n++) {
            Said said = waiting[n];
            boolean isAudited = speakers.call(said.speaker, said.topic);
            if (said.isDue) {
                held += speakers.take(said.speaker, said, isAudited);
            }
        }
        count = 0;
    }

    private Emitter emitter() {
        int place = (row.broker + 7 * row.component) & (recent.length - 1);
        Emitter found = recent[place];
        if (found != null && found.is(row)) {
            return found;
        }
        asked.cluster = row.clusters.text(row.cluster);
        asked.broker = row.broker;
        asked.component = row.components.text(row.component);
        asked.incarnation = row.incarnation;
        found = (Emitter) emitters.get(asked);
        if (found == null) {
            found = new Emitter(asked.copied(), emitters.size(), row);
            emitters.put(found.name, found);
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
        speakers.addRows(readingsMax, out);
        for (Iterator each = acts.entrySet().iterator(); each.hasNext(); ) {
            Map.Entry of = (Map.Entry) each.next();
            ((Acts) of.getValue()).addRows((UTF8String) of.getKey(), out);
        }
        emitters.clear();
        row.forgetTexts();
        speakers = new Speakers(row);
        acts.clear();
        Arrays.fill(recent, null);
        held = 0;
    }

    /** What a row says of a log, until it is added to what is known of it. */
    static final class Said {
        Emitter emitter;
        int topicId;
        int topic;
        int partition;
        long place; // a hash of all that names its speaker
        boolean isDue;
        boolean isPlain;
        long number;
        long seq;
        long observedMs;
        long newestMs;
        long watermark;
        long epoch;
        long replica;
        long life;
        long start;
        long localStart;
        int speaker;

        void set(EventRow row, Emitter of, boolean due) {
            emitter = of;
            topicId = row.topicId();
            topic = row.topic();
            partition = row.partition();
            place = Speakers.placeOf(topicId, partition, of);
            isDue = due;
            isPlain = row.isPlain;
            number = row.isRead ? row.logSeq : EventRow.NONE;
            seq = row.seq;
            observedMs = row.observedMs;
            newestMs = row.newestMs;
            watermark = row.watermark;
            epoch = row.epoch;
            replica = row.replica;
            life = row.life;
            start = row.start;
            localStart = row.localStart;
        }
    }
}
