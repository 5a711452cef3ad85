"""One log of a table as it stood at one moment: what there is, not what it means.

    finished     the followed, finished, readable copies, as columns: all that can count as coverage or be
                 read (`coverage` says what does)
    segments     every segment of the log, whatever became of it
    orphans      copies that no reader will ever count, and whose objects may be lying about
    shadowed     keys whose last record in the topic is not the one that is followed: compaction will keep the
                 wrong one, so the standing leader's agent writes the right one again
    unreadable   keys whose last record a newer agent wrote, or nobody

Owns these selections. Refuses to change: a view does not follow its table, and a new one costs little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tiering.segments.keys import log_key
from tiering.segments.logs import Column
from tiering.segments.records import (
    Claim,
    EpochStart,
    LogId,
    LogRecord,
    SegmentId,
    SegmentState,
)
from tiering.segments.rows import STATE_CODES, STATES, Flag, Standing
from tiering.segments.state import TableState

SEGMENT_ID_LENGTH = 36
STARTED = STATE_CODES[SegmentState.COPY_STARTED]
FINISHED = STATE_CODES[SegmentState.COPY_FINISHED]
DELETING = STATE_CODES[SegmentState.DELETE_STARTED]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSummary:
    """What a table keeps of a segment unpacked. The whole record is `PartitionTable.segment`'s."""

    segment_id: SegmentId
    base_offset: int
    end_offset: int
    covered_end: int
    max_timestamp_ms: int
    size_bytes: int
    leader_epochs: tuple[EpochStart, ...]
    leader_epoch: int
    generation: int
    state: SegmentState
    standing: Standing
    metadata_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSegments:
    """Columns of equal length, by rising base offset, then by rising offset in the topic.

    `many_epochs` has the epochs of those rows that have more than `first_epochs` says.
    """

    keys: Sequence[bytes]
    bases: Column
    covered_ends: Column
    end_offsets: Column
    max_timestamps_ms: Column
    sizes_bytes: Column
    metadata_offsets: Column
    first_epochs: Column
    many_epochs: Mapping[int, tuple[EpochStart, ...]]

    def segment_id(self, row: int) -> SegmentId:
        return _segment_id(self.keys[row])

    def epochs(self, row: int) -> tuple[EpochStart, ...]:
        single = (EpochStart(int(self.first_epochs[row]), int(self.bases[row])),)
        return self.many_epochs.get(row, single)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """One log of a table. `metadata_offset` is that of the log's last record; -1 if there is none.

    `rows`, `keys` and `many_epochs` are the segments as `rows.ROW` has them, by rising base offset.
    """

    log: LogId
    record: LogRecord | None
    record_offset: int | None
    claims: tuple[Claim, ...]
    metadata_offset: int
    own_key_shadowed: bool
    own_key_unreadable: bool
    rows: Column
    keys: Sequence[bytes]
    many_epochs: Mapping[int, tuple[EpochStart, ...]]
    finished: FinishedSegments

    def segments(self) -> Iterator[SegmentSummary]:
        """Every segment of which something was readable."""
        for place in np.flatnonzero(self.rows["standing"] != Standing.UNREADABLE).tolist():
            yield self._summary(place)

    def orphans(self) -> Iterator[SegmentSummary]:
        """Copies that count for nothing: set aside, or left unfinished by a leader who is none any more."""
        highest = self.claims[-1].epoch if self.claims else -1
        left = (self.rows["state"] == STARTED) & (self.rows["leader_epoch"] < highest)
        wanted = self._stand(Standing.FENCED) | self._stand(Standing.REFUSED)
        wanted |= left & self._stand(Standing.FOLLOWED)
        for place in np.flatnonzero(wanted).tolist():
            yield self._summary(place)

    def unfinished(self) -> Iterator[SegmentId]:
        """Followed attempts and removals that have not come to their end."""
        begun = (self.rows["state"] == STARTED) | (self.rows["state"] == DELETING)
        for place in np.flatnonzero(begun & self._stand(Standing.FOLLOWED)).tolist():
            yield _segment_id(self.keys[place])

    def claims_to_repeat(self) -> tuple[Claim, ...]:
        """The earlier claims that a new record of the log must carry: those that fence some copy here."""
        fenced = self.rows[self._stand(Standing.FENCED)]
        return tuple(
            claim
            for claim in self.claims[:-1]
            if np.any((fenced["leader_epoch"] < claim.epoch) & (fenced["offset"] > claim.offset))
        )

    def shadowed(self) -> tuple[bytes, ...]:
        """Keys whose last record is not the one that is followed."""
        return self._flagged(Flag.SHADOWED, self.own_key_shadowed)

    def unreadable(self) -> tuple[bytes, ...]:
        """Keys whose last record cannot be read: whoever acts on the log does not know all of it."""
        return self._flagged(Flag.UNREADABLE, self.own_key_unreadable)

    def _flagged(self, flag: Flag, own: bool) -> tuple[bytes, ...]:
        places = np.flatnonzero(self.rows["flags"] & flag).tolist()
        return (*((log_key(self.log),) if own else ()), *(self.keys[place] for place in places))

    def _stand(self, standing: Standing) -> Column:
        return np.asarray(self.rows["standing"] == standing)

    def _summary(self, place: int) -> SegmentSummary:
        row = self.rows[place]
        single = (EpochStart(int(row["first_epoch"]), int(row["base"])),)
        return SegmentSummary(
            segment_id=_segment_id(self.keys[place]),
            base_offset=int(row["base"]),
            end_offset=int(row["end"]),
            covered_end=int(row["covered_end"]),
            max_timestamp_ms=int(row["max_timestamp"]),
            size_bytes=int(row["size"]),
            leader_epochs=self.many_epochs.get(place, single),
            leader_epoch=int(row["leader_epoch"]),
            generation=int(row["generation"]),
            state=STATES[row["state"]],
            standing=Standing(row["standing"]),
            metadata_offset=int(row["offset"]),
        )


def view_of(state: TableState, number: int) -> LogView:
    """The view of one log, now."""
    log = state.logs[number]
    numbers = np.array(log.rows, np.int64)
    rows = state.store.rows[numbers]
    order = np.lexsort((rows["offset"], rows["base"]))
    numbers, rows = numbers[order], rows[order]
    keys = [state.store.keys[row] or b"" for row in numbers.tolist()]
    many = np.flatnonzero(rows["flags"] & Flag.MANY_EPOCHS).tolist()
    many_epochs = {place: state.epochs(int(numbers[place])) for place in many}
    return LogView(
        log=state.log_id(log),
        record=state.log_record(log),
        record_offset=log.record_offset,
        claims=log.claims.all(),
        metadata_offset=log.offset,
        own_key_shadowed=log.shadowed,
        own_key_unreadable=log.unreadable,
        rows=rows,
        keys=keys,
        many_epochs=many_epochs,
        finished=_finished(rows, keys, many_epochs),
    )


def _finished(
    rows: Column, keys: list[bytes], many_epochs: Mapping[int, tuple[EpochStart, ...]]
) -> FinishedSegments:
    wanted = (rows["standing"] == Standing.FOLLOWED) & (rows["state"] == FINISHED)
    wanted &= (rows["flags"] & Flag.UNREADABLE) == 0
    kept, places = rows[wanted], np.flatnonzero(wanted).tolist()
    return FinishedSegments(
        keys=[keys[place] for place in places],
        bases=kept["base"].copy(),
        covered_ends=kept["covered_end"].copy(),
        end_offsets=kept["end"].copy(),
        max_timestamps_ms=kept["max_timestamp"].copy(),
        sizes_bytes=kept["size"].copy(),
        metadata_offsets=kept["offset"].copy(),
        first_epochs=kept["first_epoch"].copy(),
        many_epochs={at: many_epochs[place] for at, place in enumerate(places) if place in many_epochs},
    )


def _segment_id(key: bytes) -> SegmentId:
    return SegmentId(key[-SEGMENT_ID_LENGTH:].decode("ascii"))
