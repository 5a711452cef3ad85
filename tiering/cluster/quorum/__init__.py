"""How far the metadata log is committed, as the leader of its quorum says: DescribeQuorum (KIP-595, KIP-836).

    messages     the tables of the few requests and answers that this takes
    connection   a connection to a broker, by the names of librdkafka's settings: TLS, SASL
    client       QuorumClient: the question, put to any broker that answers
    watermark    the answer against what was read of the log: below which offset it is committed

No file of a broker says it (KAFKA_FACTS 16), and librdkafka has no such call; hence our own protocol tables.

Owns the question. Refuses to guess: whatever keeps the answer away is an `Unknown`, with its cause.

Invariant: an answer is what one leader said of one epoch of the quorum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tiering.cluster.interface import Unknown

__all__ = ["QuorumMark", "QuorumSource"]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumMark:
    """What the quorum's leader says: all below `high_watermark` of its log is committed, for ever."""

    leader_id: int
    leader_epoch: int
    high_watermark: int


class QuorumSource(Protocol):
    """Knows how far the metadata log is committed."""

    def mark(self) -> QuorumMark | Unknown: ...
