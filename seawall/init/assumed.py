"""What an estimate rests on beside what was seen: prices, and what Seawall itself does in a day.

Owns these numbers, and says of each where it is from. They are no promise. Prices are list prices that were
written down once; nothing here asks for them: `--price NAME=AMOUNT` puts in your own.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import ClassVar

MIB = 1024 * 1024
GIB = 1024 * MIB  # what S3 bills as a GB
DAYS_A_MONTH = 365 / 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """In US dollars: S3 Standard (first 50 TB), and EMR Serverless on x86, both in us-east-1."""

    AS_OF: ClassVar[str] = "2025-01"
    OF: ClassVar[str] = "AWS list prices of us-east-1"

    s3_gb_month: float = 0.023
    s3_put_1000: float = 0.005  # PUT, COPY, POST, LIST
    s3_get_1000: float = 0.0004  # GET, HEAD; deleting is free, and so is traffic within the region
    spark_vcpu_hour: float = 0.052624
    spark_gb_hour: float = 0.0057785

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(each.name for each in fields(cls))

    def with_price(self, name: str, amount: float) -> Prices:
        """`name` is one of `names`."""
        return replace(self, **{name: amount})


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What Seawall does. The comments say where a number is from; `guess` means that nobody measured it."""

    # S3 (tiering/store/upload.py, rules/policy/keys.py)
    part_bytes: int = (
        16 * MIB
    )  # UploadLimits.part_bytes: a larger object goes in parts, and two requests more
    objects: int = 3  # a segment's .log, .aux and .json
    read_backs: int = 3  # one HEAD for each (T3)
    side_share: float = 0.005  # .aux beside .log: indexes are 8 and 12 bytes for each 4 KiB
    kept_after_days: int = 8  # delete_grace_ms and backup_window_days as they are by default
    scrub_days: int = 30  # scrub_interval_ms: within it each object is read once
    listed_at_once: int = 1000
    # Events (audit_engine/observers/disk/differ.py, audit_engine/digests/emitter.py)
    watermarks_a_day: int = 144  # high_watermark: every ten minutes where it moved
    baselines_a_day: int = 4
    heartbeats_a_day: int = 1440  # agent.heartbeat_every_s, of each agent
    events_a_segment: int = 4  # of each replica: closed, deleted, log start advanced, its watermark
    tier_events: int = 4  # of a copied segment: copy and deletion, started and finished
    tier_records: int = 4  # of which each agent tells the table's state once
    event_bytes: int = 700  # in Kafka: docs/FORMATS.md's examples
    row_bytes: int = 60  # in Delta: 1.1 GB for 20 million events (measured)
    # Spark, on vcpus and memory_gb
    vcpus: int = 4
    memory_gb: int = 16
    start_s: float = 30.0  # of a run, until it has read a position (guess; 6.5 s on a local machine)
    ingests_a_day: int = 24
    ingest_events_per_s: float = 20_000.0  # guess: bench ingest prints yours
    judge_s: float = (
        60.0  # of the daily run, whatever the day: gate, commits (9 to 20 s and four commits measured)
    )
    judge_s_per_million: float = 2.0  # 20 to 33 s for 20 million events (measured on two cores)


PRICES = Prices()
WORK = Work()
