"""Classes of ours inside Spark's JVM: their sources are beside the modules that use them."""
