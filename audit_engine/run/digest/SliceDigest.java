package io.seawall.audit;

import io.seawall.ingest.PlainEvents;
import java.io.IOException;
import java.io.Serializable;
import java.util.Iterator;
import org.apache.spark.api.java.function.FlatMapFunction;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.execution.SparkPlan;

/**
 * A slice of evidence, gone through once: what it comes to for each emitter, each log, and each act.
 *
 *     Source      the slice's rows, as they lie: by columns
 *     EventRow    what one of them says, as numbers; Texts, what they name
 *     TaskDigest  one task's rows, taken many at a time; what it gives out are rows (`spark.py` names their columns)
 *     Told        one log, of all that tasks saw of it
 *
 * Of a log, each speaker's events are kept as stretches: numbers that follow each other in the order in which they are
 * judged, and what they read, in few bytes. So whether a day stands in line, and whether a watermark falls, is known
 * without a sort of its rows.
 *
 * Invariant: how rows lie in tasks, and in which order, changes nothing of what is merged.
 * Compiled by Janino: no lambdas, no inferred type arguments.
 */
public final class SliceDigest implements FlatMapFunction, Serializable {
    private final Kinds kinds;
    private final long asOfMs;
    private final long heldMax; // bytes, about; what is held at once of a task's rows
    private final long readingsMax; // bytes, of one log in one task; of more, nobody is told to be in line
    private Source source;

    /** `spelled` says what is asked of each kind (Kinds); `plain` cuts what it reads out of bodies, if anything does. */
    public SliceDigest(String spelled, PlainEvents plain, long asOfMs, long heldMax, long readingsMax)
        throws IOException {
        this.kinds = new Kinds(spelled, plain);
        this.asOfMs = asOfMs;
        this.heldMax = heldMax;
        this.readingsMax = readingsMax;
    }

    /** Of a plan whose columns are those of EventRow, in its order; rows of all parts. */
    public RDD of(SparkPlan plan) {
        source = new Source(plan);
        return source.batches().toJavaRDD().mapPartitions(this).rdd();
    }

    /** Whether it reads them as they lie. */
    public boolean isByColumns() {
        return source.isByColumns();
    }

    public Iterator call(Object batches) {
        EventRow row = new EventRow(kinds, source.places());
        Runtime own = Runtime.getRuntime();
        // All cores at work together are not to hold more than a quarter.
        long mayHold = own.maxMemory() / (4 * own.availableProcessors());
        return new TaskDigest(source.each((Iterator) batches), row, asOfMs, Math.min(heldMax, mayHold), readingsMax);
    }
}
