package io.seawall.audit;

import org.apache.spark.api.java.function.Function;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;

/** Of what a slice comes to, the rows of one part. */
public final class OfPart implements Function {
    private final int part;

    public OfPart(int part) {
        this.part = part;
    }

    public RDD of(RDD all) {
        return all.toJavaRDD().filter(this).rdd();
    }

    public Object call(Object row) {
        return Boolean.valueOf(((InternalRow) row).getInt(0) == part);
    }
}
