"""What is produced: four topics, each for one way to lose data, and values that say where they belong."""

from __future__ import annotations

TRIMMED, DIVERGED, SHRUNK, RACED = "orders", "payments", "clicks", "telemetry"
TOPICS = (TRIMMED, DIVERGED, SHRUNK, RACED)
RECORDS = 1_800
RECORD_BYTES = 1_000
MORE_RECORDS = 300  # so many close another segment

POLICY = """\
version = 1

[topics."*"]
tiering = true
total_retention_ms = "unlimited"
declare_grace_ms = "1s"
"""


def value(topic: str, number: int) -> bytes:
    return f"{topic} {number:08d} ".encode().ljust(RECORD_BYTES, b".")
