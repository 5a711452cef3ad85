"""What a slice comes to, in one pass over it in the JVM: see `spark`."""
