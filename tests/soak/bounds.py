"""What a soak asks for, and by how much anything may rise or lag: each bound with where it comes from.

Owns the numbers. Whether they were kept is in seen.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.soak.measured import MIB, Bound
from tests.soak.world import HEARTBEAT_S, Kept

# A process that is minutes old still fills its caches and arenas: so many times as much in a form of minutes.
YOUNG_S = 1500.0
YOUNG_TIMES = 4
# Of Python's, with some sixty threads: glibc gives each its arena, and an arena keeps its highest tide, so
# that a busy minute adds a step of some 10 MiB that stays. In an hour a leak of 40 MiB is seen.
MEMORY = Bound(part=0.05, on_top=12 * MIB)
# A JVM takes what it is allowed (1 GiB of heap) before it looks for what is free, and gives back when it
# likes: what it holds is held against that, and what it and Python need beside it. Growth is asked of its
# live objects.
INGEST_BYTES_MAX = (1024 + 640) * MIB
# Connections to brokers and store are opened and closed as these like; a leak would be one for each request.
HANDLES = Bound(part=0.05, on_top=4)
THREADS = Bound(part=0.05, on_top=3)
# Two pools of Spark's block manager, of 128 at most each, grow and shrink with every job. A leak of one a
# commit would be 108 in the judged part of an hour.
JVM_THREADS = Bound(part=0.0, on_top=64)
# What waits for Kafka is a few events at any moment; what was acknowledged is kept, up to the spool's limit.
WAITING = Bound(part=0.0, on_top=256 * 1024)
WAITING_BYTES_MAX = 8 * MIB
# The spool's file: what was acknowledged stays for a week, up to 256 MiB, and SQLite's journal of it.
SPOOL_BYTES_MAX = 264 * MIB
# SQLite takes a journal back into its file at 1,000 pages of 4 KiB, and keeps its size; of five observers.
JOURNALS_BYTES_MAX = 5 * 4.5 * MIB
# Beside these an agent keeps its observers' memory and a snapshot of the table: a row for each segment.
STATE = Bound(part=0.10, on_top=2 * MIB)
# Checkpoints of Spark, which keeps its last hundred batches, and its log.
SCRATCH = Bound(part=0.10, on_top=4 * MIB)
# Live objects of ingest's JVM: Spark remembers its last queries, jobs and stages, Delta a snapshot.
HEAP = Bound(part=0.10, on_top=24 * MIB)
CACHE_BYTES_MAX = 72 * MIB  # --cache-size 64MiB, and a chunk that replaces another


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """How long, how much, how often, and how far behind anything may ever be."""

    seconds: float
    records_per_s: float = 120.0
    kept: Kept = field(default_factory=Kept)
    sample_every_s: float = 10.0
    audit_every_s: float = 600.0
    scrub_every_s: float = 300.0
    commit_every_s: int = 20
    has_audit: bool = True  # False: without ingest and runs, which is without Spark
    # Of agents and serve, which answer within seconds, beside an audit that takes both cores for a minute.
    lag_s: float = 120.0
    # One commit of ingest, beside the same audit; by itself it takes a few seconds.
    commit_s: float = 50.0
    # Its first commits, while Spark compiles what it will run from then on.
    start_s: float = 180.0
    start_allowance_s: float = 90.0

    @property
    def ingest_lag_s(self) -> float:
        """The oldest event waits for the batch under way, or for the next to be due, then for its own."""
        return max(self.commit_every_s, self.commit_s) + self.commit_s + self.sample_every_s

    @property
    def evidence_s(self) -> float:
        """As of so long ago all evidence is in the tables, if every lag is within its bound."""
        return self.ingest_lag_s + 2 * HEARTBEAT_S + 5.0

    def of_its_age(self, bound: Bound) -> Bound:
        times = YOUNG_TIMES if self.seconds < YOUNG_S else 1
        return Bound(part=bound.part * times, on_top=bound.on_top * times)
