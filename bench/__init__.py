"""Benchmarks: each file here measures Seawall and a named peer on the same work, in one run."""
