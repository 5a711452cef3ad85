"""Kafka's own tools as the peer: DumpLogSegments in a JVM of its own, as its users run it."""

from __future__ import annotations

from pathlib import Path

from bench.harness import Ran, run
from seawall.jvm.classpath import classpath
from seawall.jvm.java import find_java


def dump_log_segments(segment: Path, *options: str) -> Ran:
    """Run it over one segment, its output thrown away."""
    tool = "org.apache.kafka.tools.DumpLogSegments"
    java = find_java().path
    return run([java, "-cp", classpath("broker"), tool, "--files", segment, *options])
