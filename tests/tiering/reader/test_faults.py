"""What is damaged, missing or astray is found and named, and never read over."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.encode.record_batch import PlainRecord
from tests.tiering.reader.tier import T0_MS, LogOfBatches, Tier
from tests.tiering.segments.strategies import LOG
from tiering.log.batch import HEADER_BYTES, Record
from tiering.reader.disk_cache import DiskCache
from tiering.reader.errors import ObjectDamaged, ObjectError, ObjectMissing, ReadBackError, VersionUnnamed
from tiering.reader.interface import Isolation, ReaderLimits
from tiering.reader.reader import TieredReader
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.store.aux_file import encode_aux, read_aux
from tiering.store.errors import Denied, Unavailable
from tiering.store.interface import Stored

pytestmark = pytest.mark.slow

SMALL = ReaderLimits(chunk_bytes=200, ahead_chunks=3, fetchers=2)
UNCOMMITTED = Isolation.READ_UNCOMMITTED


def records(count: int, *, text: str = "value") -> list[PlainRecord]:
    return [PlainRecord(offset=0, timestamp_ms=T0_MS + n, value=text.encode()) for n in range(count)]


def made() -> tuple[LogOfBatches, Tier, SegmentId, SegmentId]:
    """Twelve batches of two records in two segments, one of the batches aborted."""
    log, tier = LogOfBatches(), Tier()
    for n in range(11):
        log.append(records(2), producer_id=5 if n == 7 else -1, codec="lz4" if n == 3 else "none")
    log.finish(5, commit=False)
    tier.claim(log)
    return log, tier, tier.copy(log, 0, 6), tier.copy(log, 6, 12)


def read_until_error(tier: Tier, start: int, end: int) -> tuple[list[Record], ReadBackError | None]:
    found: list[Record] = []
    with TieredReader(tier.objects, limits=SMALL) as reader:
        try:
            found.extend(reader.records(tier.log, start, end))
        except ReadBackError as error:
            return found, error
    return found, None


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_flipped_bit_is_found_wherever_it_is(data: st.DataObject) -> None:
    """In either object of either segment: what comes before the error is right, and nothing wrong comes.

    A bit may lie where the read does not look; then the answer is as if nothing were wrong.
    """
    log, tier, first, second = made()
    identity, kind = data.draw(st.sampled_from([first, second])), data.draw(st.sampled_from(["log", "aux"]))
    ref = tier.ref(identity, kind)
    content = bytearray(tier.content(ref))
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    tier.tamper(ref, bytes(content))
    start, end = sorted((data.draw(st.integers(0, log.end)), data.draw(st.integers(0, log.end))))
    right = [each.offset for each in log.visible(start, end, committed=True)]

    found, error = read_until_error(tier, start, end)

    offsets = [record.offset for record in found]
    assert {record.value for record in found} <= {b"value"}
    assert offsets == right[: len(offsets)]
    if error is None:
        assert offsets == right
    else:
        assert isinstance(error, ObjectDamaged)
        assert (error.log, error.segment_id, error.key, error.version_id) == (
            LOG,
            identity,
            ref.key,
            ref.version_id,
        )
    if kind == "log" and (start, end) == (0, log.end):
        assert error is not None


@pytest.mark.parametrize("at", [0, 8, 12, 16, 17, 21, 23, 57, HEADER_BYTES])
def test_every_field_of_a_header_is_held_against_something(at: int) -> None:
    """Base offset, length, epoch and magic lie outside of the CRC and are checked all the same."""
    log, tier, first, _ = made()
    ref = tier.ref(first)
    position = sum(len(batch.content) for batch in log.batches[:2])
    content = bytearray(tier.content(ref))
    content[position + at] ^= 1
    tier.tamper(ref, bytes(content))

    found, error = read_until_error(tier, 0, log.end)

    assert [record.offset for record in found] == [0, 1, 2, 3]
    assert isinstance(error, ObjectDamaged)
    assert error.position == position


@pytest.mark.parametrize("left_bytes", [0, 50, 200, 333])
def test_a_truncated_object_is_named_with_both_sizes(left_bytes: int) -> None:
    """A store that has fewer bytes than the record says is damage, not a passing failure."""
    log, tier, first, _ = made()
    ref = tier.ref(first)
    tier.tamper(ref, tier.content(ref)[:left_bytes])

    found, error = read_until_error(tier, 0, log.end)

    assert isinstance(error, ObjectDamaged)
    assert f"the store has {left_bytes} bytes, the record {ref.size_bytes}" in str(error)
    assert [record.offset for record in found] == list(range(len(found)))


@pytest.mark.parametrize("kind", ["log", "aux"])
def test_a_missing_version_is_named_whatever_lies_under_the_key(kind: str) -> None:
    """Another version of the same key, whole and right by itself, is not read in its place."""
    log, tier, _, second = made()
    ref = tier.ref(second, kind)
    kept = tier.store.kept.objects[ref.key]
    kept[0] = replace(kept[0], version_id="another")

    found, error = read_until_error(tier, 0, log.end)

    assert isinstance(error, ObjectMissing)
    assert (error.segment_id, error.key, error.version_id) == (second, ref.key, ref.version_id)
    assert [record.offset for record in found] == list(range(12))


def test_an_object_without_a_version_on_record_is_not_read() -> None:
    """What lies under the key today may be something else."""
    log, tier, first, _ = made()
    view = tier.log

    def without_version(identity: SegmentId) -> SegmentRecord:
        record = view.segment(identity)
        assert record is not None
        assert record.objects.log is not None
        ref = record.objects.log._replace(version_id=None)
        return replace(record, objects=replace(record.objects, log=ref))

    blind = replace(view, segment=without_version)
    with TieredReader(tier.objects) as reader, pytest.raises(VersionUnnamed) as caught:
        list(reader.records(blind, 0, log.end))

    assert caught.value.segment_id == first


def test_a_store_that_refuses_is_not_called_damage() -> None:
    """The store's own error comes through."""
    log, tier, _, _ = made()
    tier.store.refuse("read", Denied)

    with TieredReader(tier.objects) as reader, pytest.raises(Denied):
        list(reader.records(tier.log, 0, log.end))


def test_failures_that_pass_are_not_seen() -> None:
    """The store's retries are under every read."""
    log, tier, _, _ = made()
    tier.store.refuse("read", Unavailable, Unavailable)

    assert len(read_until_error(tier, 0, log.end)[0]) == len(log.visible(0, log.end, committed=True))


class _Once:
    """A store whose first answer for a key is not what it has."""

    def __init__(self, tier: Tier, key: str, spoil: Callable[[bytes], bytes]) -> None:
        self._objects = tier.objects
        self._key, self._spoil = key, spoil
        self.spoiled = 0

    @property
    def bucket(self) -> str:
        return self._objects.bucket

    def read_range(self, key: str, version_id: str, start: int, end: int) -> bytes:
        content = self._objects.read_range(key, version_id, start, end)
        if key == self._key and not self.spoiled:
            self.spoiled += 1
            return self._spoil(content)
        return content

    def head(self, key: str, version_id: str | None = None) -> Stored:
        return self._objects.head(key, version_id)


@pytest.mark.parametrize("kind", ["log", "aux"])
def test_damage_on_the_way_is_fetched_again(kind: str) -> None:
    """Only what is wrong twice is damage: the second answer is right, and so is the read."""
    log, tier, _, second = made()
    objects = _Once(tier, tier.ref(second, kind).key, lambda content: content[:-1] + b"?")

    with TieredReader(objects, limits=ReaderLimits(chunk_bytes=10_000)) as reader:
        found = list(reader.records(tier.log, 0, log.end))

    assert len(found) == len(log.visible(0, log.end, committed=True))
    assert (objects.spoiled, reader.counters.fetched_again) == (1, 1)


def test_a_batch_that_an_index_leads_to_is_not_believed_alone() -> None:
    """No bit of its base offset, which no CRC covers, makes it another offset's batch."""
    log, tier = LogOfBatches(), Tier()
    for _ in range(40):
        log.append(records(4))
    tier.claim(log)
    ref = tier.ref(tier.copy(log, 0, 40, index_every=4))
    content, position = tier.content(ref), sum(len(batch.content) for batch in log.batches[:16])
    wanted = log.batches[16]

    for bit in range(64):
        spoiled = bytearray(content)
        spoiled[position + bit // 8] ^= 1 << bit % 8
        tier.tamper(ref, bytes(spoiled))
        for start in (wanted.end - 1, wanted.end):  # in it, and just behind: the first is its own entry
            found, error = read_until_error(tier, start, start + 1)
            assert found == []
            assert isinstance(error, ObjectDamaged)
            assert error.position == position


def test_a_wrong_index_costs_time_and_never_a_record() -> None:
    """An index whose entries are those of another segment, sound by itself and under its checksum."""
    log, tier = LogOfBatches(), Tier()
    for n in range(60):
        log.append(records(2, text="x" * (n % 7)))
    other = LogOfBatches()
    for n in range(60):
        other.append(records(2, text="x" * (n % 5 + 1)))
    tier.claim(log)
    strange = Tier()
    strange.claim(other)
    wrong_aux = strange.content(strange.ref(strange.copy(other, 0, 60, index_every=3), "aux"))
    identity = tier.copy(log, 0, 60, index_every=3)
    ref = tier.ref(identity, "aux")
    assert len(wrong_aux) == ref.size_bytes
    tier.tamper(ref, wrong_aux)

    with TieredReader(tier.objects, limits=SMALL) as reader:
        for offset in range(0, log.end, 5):
            assert [record.offset for record in reader.records(tier.log, offset, offset + 3)] == list(
                range(offset, min(offset + 3, log.end))
            )


def test_a_chunk_that_came_damaged_does_not_stay_in_the_cache(tmp_path: Path) -> None:
    """It was kept before its batches were looked at; the right one takes its place."""
    log, tier, first, _ = made()
    objects = _Once(tier, tier.ref(first).key, lambda content: content[:-1] + b"?")
    cache = DiskCache(tmp_path)

    with TieredReader(objects, cache=cache) as reader:
        for _ in range(3):
            assert len(list(reader.records(tier.log, 0, log.end))) == 20

    assert (objects.spoiled, reader.counters.fetched_again) == (1, 1)


def test_an_index_that_leads_past_the_offset_is_seen() -> None:
    """Entries that name true batches and too low offsets would skip records without a word."""
    log, tier = LogOfBatches(), Tier()
    for _ in range(40):
        log.append(records(4))
    tier.claim(log)
    ref = tier.ref(tier.copy(log, 0, 40, index_every=4), "aux")
    aux = read_aux(tier.content(ref))
    assert aux.offset_index is not None
    entries = struct.iter_unpack(">ii", aux.offset_index)
    early = b"".join(struct.pack(">ii", offset - 9, position) for offset, position in entries)
    tier.tamper(ref, encode_aux(replace(aux, offset_index=early)))

    with TieredReader(tier.objects, limits=SMALL) as reader:
        for start in range(0, log.end, 3):
            assert next(reader.records(tier.log, start, log.end)).offset == start


def test_a_segment_that_ends_early_is_damage() -> None:
    """All that is there is sound and of the size on record; batches that the record counts are not there."""
    log, tier, first, _ = made()
    shorter = tier.put("elsewhere", b"".join(batch.content for batch in log.batches[:4]))
    view = tier.log

    def shortened(identity: SegmentId) -> SegmentRecord | None:
        record = view.segment(identity)
        if record is None or identity != first:
            return record
        return replace(record, objects=replace(record.objects, log=shorter))

    with TieredReader(tier.objects, limits=SMALL) as reader:
        items = reader.records(replace(view, segment=shortened), 0, log.end)
        found = [next(items).offset for _ in range(8)]
        with pytest.raises(ObjectDamaged, match="the segment ends at offset 8"):
            next(items)

    assert found == list(range(8))


def test_errors_say_where() -> None:
    """One line for a person: log, segment, object, position, reason."""
    log, tier, first, _ = made()
    ref = tier.ref(first)
    content = bytearray(tier.content(ref))
    content[80] ^= 4
    tier.tamper(ref, bytes(content))

    _, error = read_until_error(tier, 0, log.end)

    assert isinstance(error, ObjectError)
    message = str(error).splitlines()[0]
    for part in (LOG.topic_id, f":{LOG.partition}", first, ref.key, "byte 0", "CRC"):
        assert part in message
