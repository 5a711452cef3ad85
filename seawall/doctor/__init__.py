"""Is everything that Seawall stands on in order? Looks, never changes; one finding a line, with its remedy.

`machine` looks at Python, Java, jars and disk, `kafka` at the brokers, `s3` at the bucket. Each finding is a
value; what could not be looked at is UNKNOWN or SKIPPED with the reason, never OK. Every look has a deadline.
"""

from __future__ import annotations

from collections.abc import Iterator

from seawall.doctor import kafka, machine, s3
from seawall.doctor.finding import Finding, Status
from seawall.settings import Settings

__all__ = ["Finding", "Status", "examine"]


def examine(settings: Settings) -> Iterator[Finding]:
    """Every finding, each as soon as it is known."""
    yield from machine.examine()
    yield from kafka.examine(settings.kafka)
    yield from s3.examine(settings.s3)
