"""What a handler is given: one record and where it stands. Values, cheap enough for millions."""

from __future__ import annotations

from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]

# What a record costs in memory beside its key and value; measured with headers absent.
RECORD_OVERHEAD_BYTES = 400


class Partition(NamedTuple):
    """A partition of a topic, by name: what a consumer is assigned."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"


class Record(NamedTuple):
    """`leader_epoch` is -1 where the broker did not say. `attempt` counts from 0 and is ours."""

    partition: Partition
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = -1
    headers: Headers = ()
    leader_epoch: int = -1
    attempt: int = 0

    @property
    def size_bytes(self) -> int:
        return RECORD_OVERHEAD_BYTES + len(self.key or b"") + len(self.value or b"")
