"""Every look there is, in the order in which one rests on another."""

from __future__ import annotations

from collections.abc import Iterator

from seawall.doctor import kafka, machine, s3
from seawall.doctor.finding import Finding
from seawall.settings import Settings


def examine(settings: Settings) -> Iterator[Finding]:
    """Every finding, each as soon as it is known."""
    yield from machine.examine()
    yield from kafka.examine(settings.kafka)
    yield from s3.examine(settings.s3)
