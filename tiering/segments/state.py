"""Everything that one table holds: rows, values, logs; and how a record becomes a row.

Owns the storage and its upkeep. Refuses to decide what is followed: `segment_fold` and `log_fold` do, through
the operations here, and they are the only ones to change it.

A row that came with thousands of others has no digest until one is asked for (`make_digests`): a replay for
`seawall read` needs none, and an agent needs them once. Until then it adds nothing to its log's.

Invariant: a row's columns are those of the record whose value its place holds; a log's digest is the sum of
its own record's and its rows' digests, each row's made or still UNDIGESTED.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tiering.segments import digest
from tiering.segments.codec import decode_log, decode_segment
from tiering.segments.keys import RecordKey, metadata_partition
from tiering.segments.logs import NOTHING, LogState
from tiering.segments.records import EpochStart, LogId, LogRecord, SegmentRecord, SegmentState
from tiering.segments.rows import DIGEST_BYTES, FREE, STATE_CODES, Flag, RowStore, Standing
from tiering.segments.values import Place, StoredValues

_NO_DIGEST = bytes(DIGEST_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataTopic:
    """Which metadata topic a table is of: a recreated one, or one with more partitions, is another."""

    cluster_id: str
    topic_id: str
    partition_count: int


class TableState:
    """The state of the table of one partition of the metadata topic."""

    def __init__(self, topic: MetadataTopic, partition: int, complete_from: int) -> None:
        self.topic = topic
        self.partition = partition
        self.complete_from = complete_from
        self.position = 0  # the offset that comes next
        self.resumed_at = complete_from  # the position of the snapshot that it went on from, if it did
        self.store = RowStore()
        self.values = StoredValues()
        self.has_undigested = False
        self.logs: list[LogState] = []
        self.log_numbers: dict[bytes, int] = {}  # by the log's key

    def may_lack_records_before(self, offset: int) -> bool:
        """Whether compaction may have taken what followed on the snapshot that this table went on from."""
        return self.resumed_at <= offset < self.complete_from

    def log_id(self, log: LogState) -> LogId:
        return LogId(self.topic.cluster_id, log.name.topic_id, log.name.partition)

    def log_number(self, name: RecordKey) -> int | None:
        """The number of the log that a key names; None if this partition is not where it belongs."""
        key = f"{name.topic_id}:{name.partition}".encode("ascii")
        number = self.log_numbers.get(key)
        if number is None:
            log = LogId(self.topic.cluster_id, name.topic_id, name.partition)
            if metadata_partition(log, self.topic.partition_count) != self.partition:
                return None
            number = len(self.logs)
            self.logs.append(LogState(name._replace(segment_id=None)))
            self.log_numbers[key] = number
        return number

    def record(self, row: int) -> SegmentRecord:
        """The record that a row holds."""
        return decode_segment(self.value(row))

    def value(self, row: int) -> bytes:
        found = self.store.rows[row]
        return self.values.get(Place(int(found["chunk"]), int(found["start"]), int(found["length"])))

    def log_record(self, log: LogState) -> LogRecord | None:
        return None if log.value == NOTHING else decode_log(log.value)

    def new_row(self, number: int, key: bytes, offset: int, standing: Standing) -> int:
        row = self.store.new(key)
        self.logs[number].rows.append(row)
        columns = self.store.rows[row]
        columns["log"], columns["offset"], columns["standing"] = number, offset, standing
        return row

    def put(self, row: int, offset: int, record: SegmentRecord, value: bytes, standing: Standing) -> None:
        """Make a row hold this record, and no flag beside it."""
        columns = self.store.rows[row]
        self.values.drop(int(columns["length"]))
        place = self.values.add(value)
        columns["base"], columns["end"] = record.base_offset, record.end_offset
        columns["covered_end"] = record.covered_end
        columns["max_timestamp"], columns["size"] = record.max_timestamp_ms, record.size_bytes
        columns["offset"], columns["leader_epoch"] = offset, record.leader_epoch
        columns["first_epoch"] = record.leader_epochs[0].epoch
        columns["generation"], columns["state"] = record.generation, STATE_CODES[record.state]
        columns["chunk"], columns["start"], columns["length"] = place
        columns["standing"] = standing
        columns["flags"] = Flag.MANY_EPOCHS if len(record.leader_epochs) > 1 else 0
        self.keep_epochs(row, record.leader_epochs)
        if self.values.needs_rewriting:
            self._rewrite_values()

    def keep_epochs(self, row: int, epochs: Sequence[EpochStart]) -> None:
        if len(epochs) > 1:
            flat = array("q", [number for each in epochs for number in each])
            self.store.epochs[row] = flat.tobytes()
        else:
            self.store.epochs.pop(row, None)

    def epochs(self, row: int) -> tuple[EpochStart, ...]:
        """The epochs of the segment in a row."""
        packed = self.store.epochs.get(row)
        if packed is None:
            columns = self.store.rows[row]
            return (EpochStart(int(columns["first_epoch"]), int(columns["base"])),)
        numbers = array("q", packed)
        return tuple(EpochStart(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True))

    def flag(self, row: int, flags: Flag) -> None:
        self.store.rows["flags"][row] |= flags

    def set_digest(self, row: int, after: bytes | None) -> None:
        """What the key's last record adds to its log's digest."""
        columns = self.store.rows[row]
        before = columns["digest"].tobytes()
        log = self.logs[int(columns["log"])]
        log.digest = digest.replaced(log.digest, before, after)
        columns["digest"] = np.frombuffer(after or _NO_DIGEST, np.uint8)
        columns["flags"] &= ~np.uint8(Flag.UNDIGESTED)

    def make_digests(self) -> None:
        """Those that are not made yet, of all rows: in the order of their values, so that each chunk of these
        is unpacked once. Who asks for one of a log asks for others of the partition soon."""
        if not self.has_undigested:
            return
        rows = self.store.rows
        late = np.flatnonzero(rows["flags"] & Flag.UNDIGESTED)
        late = late[np.lexsort((rows["start"][late], rows["chunk"][late]))]
        keys = [self.store.keys[row] or b"" for row in late.tolist()]
        places = (rows[name][late].astype(np.int64) for name in ("chunk", "start", "length"))
        made = map(digest.record_digest, keys, self.values.get_all(*places))
        rows["digest"][late] = np.frombuffer(b"".join(made), np.uint8).reshape(-1, DIGEST_BYTES)
        order = late[np.argsort(rows["log"][late], kind="stable")]
        begins = np.flatnonzero(np.diff(rows["log"][order], prepend=FREE))
        sums = digest.summed(rows["digest"][order], begins) if len(late) else []
        for number, added in zip(rows["log"][order[begins]].tolist(), sums, strict=True):
            log = self.logs[number]
            log.digest = (log.digest + added) % digest.MODULUS
        rows["flags"][late] &= ~np.uint8(Flag.UNDIGESTED)
        self.has_undigested = False

    def set_own_digest(self, log: LogState, after: bytes | None) -> None:
        """The same for the log's own record."""
        log.digest = digest.replaced(log.digest, log.own_digest, after)
        log.own_digest = after

    def forget(self, row: int) -> None:
        """A segment's key is gone."""
        self.set_digest(row, None)
        columns = self.store.rows[row]
        self.values.drop(int(columns["length"]))
        self.logs[int(columns["log"])].rows.remove(row)
        self.store.forget(row)

    @property
    def memory_bytes(self) -> int:
        """What the segments take: rows, values, keys and the index; an object of Python's own by its size."""
        store = self.store
        keys = sum(sys.getsizeof(key) for key in store.keys if key is not None)
        index = sys.getsizeof(store.index) + sys.getsizeof(store.keys) + 32 * len(store.index)
        by_log = sum(sys.getsizeof(log.rows) for log in self.logs)
        epochs = sum(sys.getsizeof(each) + 150 for each in store.epochs.values())
        return store.size_bytes + self.values.size_bytes + keys + index + by_log + epochs

    def _rewrite_values(self) -> None:
        """Copy what is still wanted, chunk by chunk, and let the rest go."""
        rows = self.store.rows
        kept = np.flatnonzero(rows["length"])
        kept = kept[np.lexsort((rows["start"][kept], rows["chunk"][kept]))]
        fresh = StoredValues()
        for row in kept.tolist():
            place = fresh.add(self.value(row))
            columns = rows[row]
            columns["chunk"], columns["start"], columns["length"] = place
        self.values = fresh


def counts_in_digest(state: SegmentState | str | None) -> bool:
    """Whether a segment's record with this state adds to the digest."""
    return state != SegmentState.DELETE_FINISHED
