"""One copy of one segment in Kafka's own tier, and the events about it, each derived from one record.

    event_id    topic id of the metadata topic : its partition : the record's offset : its leader epoch there
                and, of a record about a whole partition, : the copy's id

Owns the derivation. Invariant: the same record comes to the same event, byte for byte, whoever reads it and
however often: nothing in it is the reader's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from rules.events import CopyFinished, CopyStarted, DeleteCause, DeleteFinished, DeleteStarted, Source
from rules.identity import LogId

TierEvent: TypeAlias = CopyStarted | CopyFinished | DeleteStarted | DeleteFinished

NOT_KNOWN = -1  # of a copy whose beginning this reader never saw
GENERATION = 0  # Kafka's tier has no restores


class Mark(NamedTuple):
    """A record about a copy: where it stands, and what it says of itself."""

    offset: int
    leader_epoch: int
    at_ms: int
    broker_id: int
    is_of_partition: bool = False  # about all copies of a log at once


class Copy(NamedTuple):
    """What is known of a copy. `started` is None where its beginning was not seen; ranges are half-open."""

    metadata_partition: int
    topic_id: str
    topic: str
    partition: int
    segment_id: str
    base_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp_ms: int
    epochs: tuple[tuple[int, int], ...]
    started: Mark | None
    finished: Mark | None = None
    deleting: Mark | None = None

    @property
    def counts(self) -> bool:
        """Whether its range can be read from it."""
        return self.finished is not None and self.deleting is None


class Teller(NamedTuple):
    """Puts records about copies into events. `topic_id` is the metadata topic's."""

    cluster_id: str
    topic_id: str

    def started(self, copy: Copy, mark: Mark) -> CopyStarted:
        return CopyStarted(**self._common(copy, mark), **_content(copy))

    def finished(self, copy: Copy, mark: Mark) -> CopyFinished:
        return CopyFinished(**self._common(copy, mark), **_content(copy), objects=())

    def deleting(self, copy: Copy, mark: Mark) -> DeleteStarted:
        return DeleteStarted(**self._common(copy, mark), cause=_cause(mark))

    def deleted(self, copy: Copy, mark: Mark) -> DeleteFinished:
        return DeleteFinished(**self._common(copy, mark), cause=_cause(mark))

    def history(self, copy: Copy) -> Iterator[TierEvent]:
        """What was said of a copy that is still there, once more."""
        if copy.started is not None:
            yield self.started(copy, copy.started)
        if copy.finished is not None:
            yield self.finished(copy, copy.finished)
        if copy.deleting is not None:
            yield self.deleting(copy, copy.deleting)

    def _common(self, copy: Copy, mark: Mark) -> dict[str, Any]:
        event_id = f"{self.topic_id}:{copy.metadata_partition}:{mark.offset}:{mark.leader_epoch}"
        return {
            "event_id": f"{event_id}:{copy.segment_id}" if mark.is_of_partition else event_id,
            "occurred_at_ms": max(mark.at_ms, 0),
            "log": LogId(self.cluster_id, copy.topic_id, copy.partition),
            "topic": copy.topic,
            "leader_epoch": NOT_KNOWN,
            "segment_id": copy.segment_id,
            "base_offset": copy.base_offset,
            "end_offset": copy.end_offset,
            "generation": GENERATION,
            "metadata_offset": mark.offset,
            "source": Source.REMOTE_LOG_METADATA,
            "broker_id": mark.broker_id,
        }


def _content(copy: Copy) -> dict[str, Any]:
    return {
        "data_end": None,
        "record_count": None,
        "size_bytes": copy.size_bytes,
        "max_timestamp_ms": copy.max_timestamp_ms,
        "epochs": copy.epochs or None,
    }


def _cause(mark: Mark) -> DeleteCause | None:
    """No record carries a reason, but that the whole partition goes is said."""
    return DeleteCause.TOPIC_DELETED if mark.is_of_partition else None
