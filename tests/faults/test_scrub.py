"""The scrub finds nothing in a good bucket, and each kind of damage in one that has it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

import pytest

from rules.identity import ObjectRef
from tests.encode.record_batch import PlainRecord, encode_batch
from tests.faults.scrub import Damage, Scrubbed, scrub, tiered_records, tiered_to
from tests.tiering.segments.strategies import LOG, OTHER_LOG, gap, log_record, segment
from tests.tiering.segments.topic import Topic, new_table
from tests.tiering.store.memory import MemoryStore
from tiering.log.segment import scan
from tiering.segments.codec import encode_segment
from tiering.segments.coverage import Answer, Coverage, Piece
from tiering.segments.records import EpochStart, SegmentId, SegmentObjects, SegmentRecord, SegmentState
from tiering.segments.table import PartitionTable, ReferenceTable
from tiering.store.aux_file import AuxContents, encode_aux
from tiering.store.content import InMemory
from tiering.store.keys import KeyLayout

KEYS = KeyLayout("seawall")
TURN = 14  # of the lineage: epoch 1 begins here
LINEAGE = ((0, 0), (1, TURN))


def batches_of(base: int, end: int, *, epoch: int | None = None) -> bytes:
    """Batches of two records, of the lineage's epochs or of one."""
    offsets = [*range(base, end, 2), end]
    return b"".join(
        encode_batch(
            [PlainRecord(offset=o, timestamp_ms=o, value=b"%d" % o) for o in range(start, stop)],
            leader_epoch=(int(start >= TURN) if epoch is None else epoch),
        )
        for start, stop in pairwise(offsets)
    )


def record_of(number: int, base: int, end: int, content: bytes) -> SegmentRecord:
    """What an honest uploader would say of these bytes."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.flush()
        found = scan(file.fileno(), base_offset=base)
    return segment(
        number,
        base,
        end,
        epochs=tuple(found.epochs),
        leader_epoch=1,
        data_end=found.data_end,
        max_timestamp_ms=found.max_timestamp_ms,
        record_count=found.record_count,
        batch_count=found.batch_count,
        size_bytes=len(content),
    )


class HandMade:
    """A bucket and the topic about it, put together without the uploader."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.topic = Topic()
        self.topic.claim(log_record(1, epochs=LINEAGE))

    def put(self, key: str, content: bytes) -> ObjectRef:
        body = InMemory(content)
        version = self.store.put_new(key, body, body.checksum)
        return ObjectRef(key, len(content), "CRC64NVME", body.checksum, version)

    def copy(
        self,
        number: int,
        base: int,
        end: int,
        *,
        content: bytes | None = None,
        aux: bytes | None = None,
        json: bytes | None = None,
        says: Callable[[SegmentRecord], SegmentRecord] = lambda record: record,
    ) -> SegmentRecord:
        """A finished copy; by default a good one. `says` changes the record, of whatever is stored."""
        content = batches_of(base, end) if content is None else content
        record = says(record_of(number, base, end, content))
        self.topic.append(replace(record, state=SegmentState.COPY_STARTED, objects=SegmentObjects()))
        objects = SegmentObjects(
            log=self.put(f"{record.key_stem}.log", content),
            aux=self.put(f"{record.key_stem}.aux", aux_of(base, end) if aux is None else aux),
        )
        record = replace(record, objects=objects)
        stored = self.put(f"{record.key_stem}.json", encode_segment(record) if json is None else json)
        record = replace(record, objects=replace(objects, json=stored))
        assert self.topic.append(record) == []
        return record

    def restore(self, record: SegmentRecord, *, log: bytes | None = None) -> SegmentRecord:
        """Remove a copy and put it back as `seawall backup` does: the same bytes as new versions, the record
        anew. `log`: other bytes for the .log."""
        for state in (SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED):
            self.topic.append(replace(record, state=state))
        again: dict[str, ObjectRef] = {}
        for kind, ref in record.objects.present():
            kept = b"".join(self.store.read_range(ref.key, ref.version_id or "", 0, ref.size_bytes))
            self.store.mark_deleted(ref.key)
            again[kind] = self.put(ref.key, log if log is not None and kind == "log" else kept)
        restored = replace(
            record, objects=SegmentObjects(**again), generation=record.generation + 1, event_id="restored"
        )
        assert self.topic.append(restored) == []
        return restored

    def spoil(self, ref: ObjectRef | None, content: bytes | None) -> None:
        """Change the bytes of a stored version, or take it away, as a store of good faith never does."""
        assert ref is not None
        versions = self.store.kept.objects[ref.key]
        self.store.kept.objects[ref.key] = [
            each if each.version_id != ref.version_id else replace(each, content=content or b"")
            for each in versions
            if each.version_id != ref.version_id or content is not None
        ]

    def scrubbed(self, *, may_have_gaps: bool = False) -> Scrubbed:
        return scrub(self.table, self.store, KEYS, may_have_gaps=may_have_gaps)

    @property
    def table(self) -> ReferenceTable:
        table: PartitionTable = new_table()
        table.apply_many(self.topic.records)
        return ReferenceTable([table])


def aux_of(base: int, end: int) -> bytes:
    return encode_aux(
        AuxContents(
            base_offset=base,
            end_offset=end,
            offset_index=None,
            time_index=None,
            transaction_index=None,
            producer_snapshot=None,
            leader_epochs=(EpochStart(0, 0),),
            aborted=(),
        )
    )


@pytest.fixture
def good() -> HandMade:
    """Four copies of one log, two of which overlap, and what an attempt that failed has left."""
    made = HandMade()
    for number, (base, end) in enumerate([(0, 10), (10, 20), (14, 30), (30, 36)]):
        made.copy(number, base, end)
    failed = record_of(9, 36, 40, batches_of(36, 40))
    made.topic.append(replace(failed, state=SegmentState.COPY_STARTED, objects=SegmentObjects()))
    made.put(f"{failed.key_stem}.log", b"half of it")
    made.store.start_parts(f"{failed.key_stem}.aux")
    return made


def damages(found: Scrubbed) -> set[Damage]:
    return {each.damage for each in found.problems}


def test_a_good_bucket_is_clean_and_all_of_it_was_looked_at(good: HandMade) -> None:
    """Four segments of three objects each; what the failed attempt left is accounted for."""
    found = good.scrubbed()

    assert found.is_clean, str(found)
    assert (found.logs, found.segments, found.objects, found.versions) == (1, 4, 12, 13)
    assert found.records == 10 + 10 + 16 + 6
    assert len(found.leftovers) == 2


def test_what_is_read_back_is_each_offset_once(good: HandMade) -> None:
    """Overlaps are clipped; the values are those of the offsets."""
    read = [(each.offset, each.value) for each in tiered_records(good.table, good.store, LOG)]

    assert tiered_to(good.table, LOG) == 36
    assert read == [(offset, b"%d" % offset) for offset in range(36)]


def test_nothing_looked_at_is_not_clean() -> None:
    """An empty bucket, with nothing wrong in it, proves nothing."""
    found = HandMade().scrubbed()

    assert found.problems == []
    assert not found.is_clean


def flip(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def gone(made: HandMade) -> None:
    made.spoil(made.copy(20, 36, 40).objects.aux, None)


def marked_deleted(made: HandMade) -> None:
    made.store.mark_deleted(f"{made.copy(20, 36, 40).key_stem}.log")


def cut_short(made: HandMade) -> None:
    ref = made.copy(20, 36, 40).objects.log
    made.spoil(ref, batches_of(36, 38))


def rotten(made: HandMade) -> None:
    ref = made.copy(20, 36, 40).objects.log
    made.spoil(ref, flip(batches_of(36, 40), 80))


def stored_rotten(made: HandMade) -> None:
    made.copy(20, 36, 40, content=batches_of(36, 38) + flip(batches_of(38, 40), 70))


def says_more_records(made: HandMade) -> None:
    made.copy(20, 36, 40, says=lambda record: replace(record, batch_count=record.batch_count + 1))


def says_another_time(made: HandMade) -> None:
    made.copy(20, 36, 40, says=lambda record: replace(record, max_timestamp_ms=5))


def ends_before_the_next(made: HandMade) -> None:
    made.copy(20, 36, 40, content=batches_of(36, 38))


def aux_of_another(made: HandMade) -> None:
    made.copy(20, 36, 40, aux=aux_of(0, 10))


def aux_garbled(made: HandMade) -> None:
    made.copy(20, 36, 40, aux=flip(aux_of(36, 40), 30))


def json_of_another(made: HandMade) -> None:
    other = encode_segment(segment(77, 36, 40))
    made.copy(20, 36, 40, json=other)


def json_garbled(made: HandMade) -> None:
    made.copy(20, 36, 40, json=b"{")


def second_version(made: HandMade) -> None:
    record = made.copy(20, 36, 40)
    made.store.mark_deleted(f"{record.key_stem}.log")
    made.put(f"{record.key_stem}.log", b"another")


def stranger(made: HandMade) -> None:
    made.put(f"{segment(88, 50, 60).key_stem}.log", b"whose?")


def foreign_name(made: HandMade) -> None:
    made.put(f"{KEYS.cluster_prefix(LOG.cluster_id)}notes.txt", b"whose?")


def strange_upload(made: HandMade) -> None:
    made.store.start_parts(f"{segment(88, 50, 60).key_stem}.log")


def removed_and_there(made: HandMade) -> None:
    record = made.copy(20, 36, 40)
    for state in (SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED):
        made.topic.append(replace(record, state=state))


def gap_on_record(made: HandMade) -> None:
    made.topic.claim(log_record(1, epochs=LINEAGE, gaps=(gap(36, 40, leader_epoch=1),)))


def unclaimed(made: HandMade) -> None:
    record = segment(20, 0, 5, log=OTHER_LOG, state=SegmentState.COPY_STARTED)
    made.topic.append(record)


CASES: list[tuple[Callable[[HandMade], None], set[Damage]]] = [
    (gone, {Damage.MISSING}),
    (marked_deleted, {Damage.HIDDEN}),
    (cut_short, {Damage.SIZE, Damage.CHECKSUM, Damage.BATCHES}),
    (rotten, {Damage.CHECKSUM, Damage.BATCHES}),
    (stored_rotten, {Damage.BATCHES}),
    (says_more_records, {Damage.BATCHES}),
    (says_another_time, {Damage.BATCHES}),
    (ends_before_the_next, {Damage.BATCHES}),
    (aux_of_another, {Damage.AUX}),
    (aux_garbled, {Damage.AUX}),
    (json_of_another, {Damage.JSON}),
    (json_garbled, {Damage.JSON}),
    (second_version, {Damage.HIDDEN, Damage.UNACCOUNTED}),
    (stranger, {Damage.UNACCOUNTED}),
    (foreign_name, {Damage.UNACCOUNTED}),
    (strange_upload, {Damage.UNACCOUNTED}),
    (removed_and_there, {Damage.REMAINS}),
    (gap_on_record, {Damage.GAP}),
    (unclaimed, {Damage.UNCLAIMED}),
]


@pytest.mark.parametrize(("harm", "expected"), CASES, ids=lambda each: getattr(each, "__name__", ""))
def test_each_kind_of_damage_is_found(
    good: HandMade, harm: Callable[[HandMade], None], expected: set[Damage]
) -> None:
    """One thing is wrong, and the scrub names it and nothing else."""
    harm(good)

    found = good.scrubbed()

    assert damages(found) == expected, str(found)
    assert not found.is_clean


def test_what_was_restored_is_clean(good: HandMade) -> None:
    """Twice over: each generation left a version, and the .json is the first one's."""
    record = good.copy(20, 36, 40)
    good.restore(good.restore(record))

    found = good.scrubbed()

    assert found.is_clean, str(found)
    assert found.versions == 13 + 3 * (3 + 2)


def test_what_was_restored_wrongly_is_found(good: HandMade) -> None:
    """Other bytes than the .json is of, though the record is of them; and a version that no restore made."""
    record = good.restore(good.copy(20, 36, 40), log=batches_of(36, 40, epoch=0))
    good.store.mark_deleted(f"{record.key_stem}.aux")
    good.put(f"{record.key_stem}.aux", b"another")

    found = good.scrubbed()

    assert damages(found) == {Damage.BATCHES, Damage.JSON, Damage.HIDDEN, Damage.UNACCOUNTED}, str(found)


def test_what_a_removed_attempt_wrote_late_is_a_leftover(good: HandMade) -> None:
    """A deposed leader's agent that had not heard: its object comes after the attempt was removed."""
    record = replace(segment(20, 36, 40), objects=SegmentObjects())
    for state in (SegmentState.COPY_STARTED, SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED):
        good.topic.append(replace(record, state=state))
    good.put(f"{record.key_stem}.log", b"late")

    found = good.scrubbed()

    assert found.is_clean, str(found)
    assert f"{record.key_stem}.log" in found.leftovers


def test_a_gap_is_no_damage_where_it_may_be(good: HandMade) -> None:
    """A test that has bytes destroyed on all replicas says so."""
    gap_on_record(good)

    assert good.scrubbed(may_have_gaps=True).is_clean


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([(0, 10, 0), (10, 20, 1), (20, 30, 2), (30, 36, 3)], set()),
        ([(0, 10, 0), (20, 30, 2), (30, 36, 3)], {Damage.HOLE}),
        ([(0, 10, 0), (10, 20, 1), (20, 30, 2)], {Damage.HOLE}),
        ([(0, 10, 0), (10, 20, 1), (14, 30, 2), (30, 36, 3)], {Damage.OVERLAP}),
        ([(0, 20, 0), (20, 30, 2), (30, 36, 3)], {Damage.OUTSIDE}),
        ([(0, 10, 0), (10, 20, 1), (20, 30, 2), (30, 36, 66)], {Damage.OUTSIDE}),
        ([(0, 10, 4), (10, 20, 1), (20, 30, 2), (30, 36, 3)], {Damage.LINEAGE}),
    ],
)
def test_pieces_that_do_not_fit_together_are_found(
    good: HandMade,
    monkeypatch: pytest.MonkeyPatch,
    pieces: list[tuple[int, int, int]],
    expected: set[Damage],
) -> None:
    """As a coverage with a defect would give them: a hole, an overlap, beyond the segment, not the log's."""
    good.copy(4, 0, 10, content=batches_of(0, 10, epoch=1))
    numbers = {number: segment(number, 0, 1).segment_id for number in range(100)}

    def broken(self: Coverage, start: int, end: int) -> Iterator[Answer]:
        for begin, until, number in pieces:
            yield Piece(start=begin, end=until, segment_id=SegmentId(numbers[number]))

    monkeypatch.setattr(Coverage, "pieces", broken)

    assert damages(good.scrubbed()) == expected
