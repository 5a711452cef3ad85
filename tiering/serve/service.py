"""What every answer is made from, in one value; and the limits, each with its default and its counter.

Limits of one part stand where that part does: READS_MAX, CURSORS_MAX, UPSTREAMS_MAX and others. All are in
docs/SERVING.md, with the memory that they come to.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

from tiering.reader.interface import MIB
from tiering.serve.budget import Budget
from tiering.serve.cluster import Cluster
from tiering.serve.coordinators import Coordinators
from tiering.serve.counters import Counters
from tiering.serve.marks import MarksOf
from tiering.serve.reads import Reads
from tiering.serve.tier import TierTable
from tiering.serve.timing import Timing
from tiering.serve.upstream import Address

# Node ids that no broker has: Kafka's consumer makes the id of a coordinator's connection by subtracting from
# 2**31 - 1, and brokers are numbered from below.
NODE_IDS_FROM = 900_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one client, and all of them together, may take."""

    connections_max: int = 1000  # connections_refused
    connections_per_host_max: int = 1000  # the same; behind a balancer all come from one host
    request_bytes_max: int = 2 * MIB  # requests_too_large
    produce_bytes_max: int = 16 * MIB  # the same; it is read to be refused
    requests_bytes_max: int = 64 * MIB  # request_waits: of all large requests that are being sent or answered
    request_small_bytes: int = 64 * 1024  # up to which one takes no room of that
    frame_s: float = 30.0  # requests_slow: from a frame's first byte to its last
    idle_s: float = 600.0  # clients_idle; Kafka's own connections.max.idle.ms
    sign_in_s: float = 30.0  # clients_idle, before a client has shown who it is
    answer_s: float = 60.0  # clients_slow: an answer must be taken in that time
    stalled_s: float = 5.0  # the same: some of it in that time, while others wait for room
    answer_bytes_max: int = 8 * MIB  # answers_cut: of one answer, whole first batches apart
    answers_bytes_max: int = 256 * MIB  # budget_waits: of all answers that are on their way
    requests_per_s: float = 2000.0  # requests_paced
    tiered_at_once: int = 8  # turns_put_off: partitions of one answer from the store
    tail_wait_ms_max: int = 30_000  # waits_cut: what a client may have a leader wait for


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """For one event loop."""

    cluster: Cluster
    marks: MarksOf
    tier: TierTable
    reads: Reads
    coordinators: Coordinators
    counters: Counters
    timing: Timing
    budget: Budget  # of answers
    requests: Budget  # of large requests
    nodes: tuple[Address, ...]  # as clients reach us; each is a broker to them
    limits: Limits

    def node_of(self, topic: str, partition: int) -> int:
        """Which of our nodes a partition's leader is said to be: the same at every instance."""
        return NODE_IDS_FROM + (crc32(topic.encode()) + partition) % len(self.nodes)
