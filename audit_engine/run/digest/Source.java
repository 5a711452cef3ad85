package io.seawall.audit;

import java.io.Serializable;
import java.util.Iterator;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Predicate$;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.FilterExec;
import org.apache.spark.sql.execution.InputAdapter;
import org.apache.spark.sql.execution.ProjectExec;
import org.apache.spark.sql.execution.RowToColumnarExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.immutable.Seq;

/**
 * The rows of a plan as batches of columns. Of files of Parquet of which nothing but a filter and a choice of columns
 * is asked, they are those that Spark's reader fills, and no row is made; of any other plan, they are made of its rows.
 *
 * Invariant: it is the same rows, in the same order.
 */
final class Source implements Serializable {
    private final transient SparkPlan plan; // what gives the batches
    private final boolean isByColumns;
    private final int[] places; // of each column that is asked for, among those of the batches
    private Expression condition; // of a filter, or null
    private final Seq columns;

    Source(SparkPlan of) {
        SparkPlan at = inside(of);
        Seq chosen = of.output();
        if (at instanceof ProjectExec && areColumns(((ProjectExec) at).projectList())) {
            chosen = ((ProjectExec) at).projectList();
            at = inside(((ProjectExec) at).child());
        }
        if (at instanceof FilterExec) {
            condition = ((FilterExec) at).condition();
            at = inside(((FilterExec) at).child());
        }
        int[] found = at instanceof FileSourceScanExec ? placesIn(chosen, at.output()) : null;
        isByColumns = found != null && ((FileSourceScanExec) at).supportsColumnar();
        plan = isByColumns ? at : new RowToColumnarExec(of);
        condition = isByColumns ? condition : null;
        columns = plan.output();
        places = isByColumns ? found : placesIn(columns, columns);
    }

    /** Whether no row is made. */
    boolean isByColumns() {
        return isByColumns;
    }

    int[] places() {
        return places;
    }

    RDD batches() {
        return plan.executeColumnar();
    }

    /** Of one task's. */
    Batches each(Iterator of) {
        BasePredicate filter = null;
        if (condition != null) {
            filter = Predicate$.MODULE$.create(condition, columns);
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

    /** One after another; what is in one stays as it is until the next is asked for. */
    static final class Batches {
        private final Iterator batches;
        private final BasePredicate filter;
        private ColumnarBatch batch;

        Batches(Iterator batches, BasePredicate filter) {
            this.batches = batches;
            this.filter = filter;
        }

        /** Null: there are no more. */
        ColumnarBatch next() {
            batch = batches.hasNext() ? (ColumnarBatch) batches.next() : null;
            return batch;
        }

        /** Whether the filter leaves in the row at this place of it. */
        boolean has(int place) {
            return filter == null || filter.eval(batch.getRow(place));
        }
    }
}
