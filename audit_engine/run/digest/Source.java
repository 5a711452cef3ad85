package io.seawall.audit;

import java.io.Serializable;
import java.util.Iterator;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;

/**
 * The rows of a plan, without making rows of them where they come as columns: of files of Parquet of which nothing but
 * a filter and a choice of columns is asked, the batches that Spark's reader fills. Any other plan is asked for rows.
 *
 * Invariant: it is the same rows, in the same order.
 */
final class Source implements Serializable {
    private final transient SparkPlan plan;
    private final transient FileSourceScanExec scan; // null where rows are asked for
    private final int[] places; // of each of the plan's columns, among those of the scan
    private Expression condition; // of the filter, or null
    private Seq scanned;

    Source(SparkPlan plan) {
        this.plan = plan;
        SparkPlan at = inside(plan);
        Seq chosen = plan.output();
        if (at instanceof ProjectExec && areColumns(((ProjectExec) at).projectList())) {
            chosen = ((ProjectExec) at).projectList();
            at = inside(((ProjectExec) at).child());
        }
        if (at instanceof FilterExec) {
            condition = ((FilterExec) at).condition();
            at = inside(((FilterExec) at).child());
        }
        int[] found = at instanceof FileSourceScanExec ? placesIn(chosen, ((FileSourceScanExec) at).output()) : null;
        if (found != null && ((FileSourceScanExec) at).supportsColumnar()) {
            scan = (FileSourceScanExec) at;
            scanned = scan.output();
            places = found;
        } else {
            scan = null;
            condition = null;
            places = new int[plan.output().size()];
            for (int column = 0; column < places.length; column++) {
                places[column] = column;
            }
        }
    }

    boolean isByColumns() {
        return scanned != null;
    }

    int[] places() {
        return places;
    }

    RDD rows() {
        return isByColumns() ? scan.executeColumnar() : plan.execute();
    }

    /** Of one task, groups of rows that stay as they are until the next is asked for. */
    Groups each(Iterator of) {
        if (!isByColumns()) {
            return new CopiedRows(of);
        }
        BasePredicate filter = null;
        if (condition != null) {
            filter = Predicate$.MODULE$.create(condition, scanned);
            filter.initialize(0); // of a task's own number nothing here depends
        }
        return new Batches(of, filter);
    }

    /** Without what only says how it is run. */
    private static SparkPlan inside(SparkPlan plan) {
        if (plan instanceof WholeStageCodegenExec) {
            return inside(((WholeStageCodegenExec) plan).child());
        }
        if (plan instanceof InputAdapter) {
            return inside(((InputAdapter) plan).child());
        }
        return plan instanceof ColumnarToRowExec ? inside(((ColumnarToRowExec) plan).child()) : plan;
    }

    private static boolean areColumns(Seq expressions) {
        for (int at = 0; at < expressions.size(); at++) {
            if (!(expressions.apply(at) instanceof Attribute)) {
                return false;
            }
        }
        return true;
    }

    private static int[] placesIn(Seq chosen, Seq scanned) {
        int[] found = new int[chosen.size()];
        for (int column = 0; column < found.length; column++) {
            found[column] = -1;
            for (int at = 0; at < scanned.size(); at++) {
                if (((Attribute) scanned.apply(at)).exprId().equals(((Attribute) chosen.apply(column)).exprId())) {
                    found[column] = at;
                }
            }
            if (found[column] == -1) {
                return null;
            }
        }
        return found;
    }

    /** Some rows at a time. */
    abstract static class Groups {
        /** Makes the next ones those that are told of; false: there are none. */
        abstract boolean next();

        abstract int size();

        /** Until it is asked for another; null where the filter leaves it out. */
        abstract InternalRow at(int place);
    }

    static final class Batches extends Groups {
        private final Iterator batches;
        private final BasePredicate filter;
        private ColumnarBatch batch;

        Batches(Iterator batches, BasePredicate filter) {
            this.batches = batches;
            this.filter = filter;
        }

        boolean next() {
            if (!batches.hasNext()) {
                return false;
            }
            batch = (ColumnarBatch) batches.next();
            return true;
        }

        int size() {
            return batch.numRows();
        }

        InternalRow at(int place) {
            InternalRow row = batch.getRow(place);
            return filter == null || filter.eval(row) ? row : null;
        }
    }

    static final class CopiedRows extends Groups {
        private final Iterator rows;
        private final InternalRow[] held = new InternalRow[64];
        private int size = 0;

        CopiedRows(Iterator rows) {
            this.rows = rows;
        }

        boolean next() {
            for (size = 0; size < held.length && rows.hasNext(); size++) {
                held[size] = ((InternalRow) rows.next()).copy();
            }
            return size > 0;
        }

        int size() {
            return size;
        }

        InternalRow at(int place) {
            return held[place];
        }
    }
}
