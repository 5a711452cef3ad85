"""Each sort of damage, in a bucket behind S3's own protocol: found, named, and nothing else with it."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest

from rules.events import ScrubDepth, ScrubOutcome
from tests.tiering.scrub.conftest import Wire
from tests.tiering.scrub.kit import Kit, flip
from tests.tiering.scrub.trouble import Mode
from tests.tiering.segments.strategies import LOG
from tiering.outcome import Failed
from tiering.scrub.ports import Ask
from tiering.scrub.report import Report
from tiering.segments.records import SegmentObjects, SegmentRecord, SegmentState

pytestmark = pytest.mark.slow

CRC_COVERED = 80  # of the first batch: inside of its records
EPOCH_AT = 15  # of the first batch: its leader epoch, which no CRC covers
LISTED = Ask(depth=ScrubDepth.LISTED)


def test_what_is_as_it_was_said_is_verified(wire: Wire) -> None:
    """Every object of every copy, read to its last byte, one event each; and one for the log's listing."""
    records = [wire.kit.copy() for _ in range(3)]

    report = wire.kit.scrub()

    whole = sum(ref.size_bytes for record in records for _, ref in record.objects.present())
    assert (report.counts, report.segments, report.read_bytes) == ({ScrubOutcome.VERIFIED: 9}, 3, whole)
    assert {each.object_key for each in wire.kit.scrubbed} == {
        ref.key for record in records for _, ref in record.objects.present()
    }
    assert {each.scrub_depth for each in wire.kit.scrubbed} == {ScrubDepth.DEEP}
    assert (wire.kit.inventory.object_count, wire.kit.inventory.size_bytes) == (9, whole)
    assert sum(wire.kit.paced) == whole


def marked(wire: Wire, record: SegmentRecord) -> None:
    wire.client.delete_object(Bucket=wire.bucket, Key=f"{record.key_stem}.log")


def gone(wire: Wire, record: SegmentRecord) -> None:
    ref = record.objects.log
    assert ref is not None
    wire.client.delete_object(Bucket=wire.bucket, Key=ref.key, VersionId=ref.version_id)


def gone_under_a_marker(wire: Wire, record: SegmentRecord) -> None:
    gone(wire, record)
    marked(wire, record)


def overwritten(wire: Wire, record: SegmentRecord) -> None:
    wire.client.put_object(Bucket=wire.bucket, Key=f"{record.key_stem}.log", Body=b"somebody else's")


def overwritten_alike(wire: Wire, record: SegmentRecord) -> None:
    """The same bytes, as another version: readers of the record still find theirs."""
    ref = record.objects.log
    assert ref is not None
    body = wire.client.get_object(Bucket=wire.bucket, Key=ref.key)["Body"].read()
    wire.client.put_object(Bucket=wire.bucket, Key=ref.key, Body=body)


AWAY: dict[Callable[[Wire, SegmentRecord], None], str] = {
    marked: "deleted",
    gone: "missing",
    gone_under_a_marker: "missing",
    overwritten: "overwritten",
    overwritten_alike: "overwritten",
}


@pytest.mark.parametrize("ask", [Ask(), LISTED], ids=["deep", "listed"])
def test_a_version_that_is_not_the_live_one_is_found(wire: Wire, ask: Ask) -> None:
    """By the listing already; said once, and in the log's inventory where that has a place for it."""
    wire.kit.copy()
    said = {}
    for harm, problem in AWAY.items():
        harmed = wire.kit.copy()
        harm(wire, harmed)
        said[f"{harmed.key_stem}.log"] = problem

    report = wire.kit.scrub(ask)

    assert {each.key: each.problem for each in report.told} == said
    assert report.counts == {ScrubOutcome.VERIFIED: 13, ScrubOutcome.FAILED: 5}
    assert report.unknown_count == 0
    told = wire.kit.inventory
    assert set(told.missing_keys) == {key for key, problem in said.items() if problem == "missing"}
    assert set(told.deleted_keys) == {key for key, problem in said.items() if problem == "deleted"}


OTHER_BYTES: list[tuple[Callable[[bytes], bytes], list[str]]] = [
    (lambda content: flip(content, CRC_COVERED), ["checksum", "crc_mismatch"]),
    (lambda content: flip(content, EPOCH_AT), ["checksum", "epoch_back"]),
    (lambda content: flip(content, 7), ["checksum", "hole"]),  # the first batch's base offset
    (lambda content: content[:-10], ["size"]),
    (lambda content: content + b"more", ["size"]),
    (lambda content: b"", ["size"]),
]


def test_other_bytes_than_were_copied_are_found(wire: Wire) -> None:
    """Each change by what it broke: within a CRC, outside of it, the length."""
    said = {}
    for stored, problems in OTHER_BYTES:
        said[wire.kit.copy(stored=stored).base_offset] = problems

    report = wire.kit.scrub()

    found = {}
    for failed in report.told:
        assert isinstance(failed.outcome, Failed)
        assert (failed.kind.value, failed.looks) == ("log", 2)
        found[failed.record.base_offset] = list(dict.fromkeys(each.kind for each in failed.outcome.problems))
    assert found == said


def test_two_objects_that_changed_places_are_found(wire: Wire) -> None:
    """Each is sound by itself, and is another segment's."""
    content: list[bytes] = []

    def keep(first: bytes) -> bytes:
        content.append(first)
        return first

    wire.kit.copy(stored=keep)
    wire.kit.copy(stored=lambda second: content[0])

    report = wire.kit.scrub()

    [failed] = report.told
    assert "offset_back" in failed.detail
    assert failed.record.base_offset == 8


def test_rot_that_the_store_does_not_know_of_is_found_by_reading(wire: Wire) -> None:
    """Size and checksum are as stated, version and all, and one bit of the bytes is not."""
    wire.kit.copy()
    wire.kit.objects = wire.through
    wire.trouble.spoil(Mode.ROT, method="GET", target=".log")

    assert wire.kit.scrub(LISTED).counts == {ScrubOutcome.VERIFIED: 3}
    report = wire.kit.scrub()

    assert report.counts == {ScrubOutcome.VERIFIED: 2, ScrubOutcome.FAILED: 1}
    assert report.told[0].detail.startswith("checksum: ")
    assert "crc_mismatch" in report.told[0].detail


def test_bytes_that_came_wrong_once_are_no_damage(wire: Wire) -> None:
    """The way from the store is not the store: a second reading counts, and that there was one is told."""
    wire.kit.copy()
    wire.kit.objects = wire.through
    wire.trouble.spoil(Mode.ROT, method="GET", target=".log", count=1)

    report = wire.kit.scrub()

    assert (report.counts, report.settled_by_second_look) == ({ScrubOutcome.VERIFIED: 3}, 1)


def counts_more(record: SegmentRecord) -> SegmentRecord:
    return replace(record, batch_count=record.batch_count + 1)


def another_time(record: SegmentRecord) -> SegmentRecord:
    return replace(record, max_timestamp_ms=5)


def reaches_further(record: SegmentRecord) -> SegmentRecord:
    return replace(record, end_offset=record.end_offset + 2)


def of_transactions(record: SegmentRecord) -> SegmentRecord:
    return replace(record, has_txn_index=True)


OTHER_WORDS: list[tuple[Callable[[SegmentRecord], SegmentRecord], dict[str, str]]] = [
    (counts_more, {"log": "differs"}),
    (another_time, {"log": "differs"}),
    (of_transactions, {"log": "differs"}),
    (reaches_further, {"log": "hole", "aux": "aux"}),
]


def test_metadata_that_is_not_the_bytes_is_found(wire: Wire) -> None:
    """The bytes are sound, and as they were stored; the record speaks of others."""
    said = {}
    for says, problems in OTHER_WORDS:
        said[wire.kit.copy(says=says).base_offset] = problems

    report = wire.kit.scrub()

    assert by_segment(report) == said


BESIDE: list[tuple[dict[str, Callable[[bytes], bytes]], dict[str, str]]] = [
    ({"aux": lambda side: flip(side, 70)}, {"aux": "aux"}),
    ({"aux": lambda side: side[:-3]}, {"aux": "aux"}),
    ({"aux": lambda _: b"not one"}, {"aux": "aux"}),
    ({"json": lambda _: b"{"}, {"json": "json"}),
    ({"json": lambda said: said.replace(b'"orders"', b'"ordres"')}, {"json": "json"}),
]


def test_what_stands_beside_the_segment_is_read_too(wire: Wire) -> None:
    """An `.aux` that cannot be read back, a `.json` that is not the record: stored so from the first."""
    said = {}
    for made, problems in BESIDE:
        said[wire.kit.copy(**made).base_offset] = problems  # type: ignore[arg-type]  # each is one of three

    report = wire.kit.scrub()

    assert by_segment(report) == said


def by_segment(report: Report) -> dict[int, dict[str, str | None]]:
    """What each object that is not right ended with, by its segment and kind."""
    found: dict[int, dict[str, str | None]] = {}
    for each in report.told:
        found.setdefault(each.record.base_offset, {})[each.kind.value] = each.problem
    return found


def test_what_nobody_knows_of_is_found(wire: Wire) -> None:
    """A key of no layout of ours, and one of an attempt that nobody announced; not what was removed."""
    record = wire.kit.copy()
    removed = wire.kit.copy()
    wire.kit.expire(removed)
    log_prefix = wire.kit.layout.log_prefix(LOG)
    strange = {f"{log_prefix}notes.txt", f"{log_prefix}{5:020d}-{uuid.uuid4()}.log"}
    for key in strange:
        wire.client.put_object(Bucket=wire.bucket, Key=key, Body=b"whose?")

    report = wire.kit.scrub()

    assert {each.found.key for each in report.unknown} == set(wire.kit.inventory.unknown_keys) == strange
    assert report.counts == {ScrubOutcome.VERIFIED: 3}
    assert record.key_stem in wire.kit.scrubbed[0].object_key


def test_a_restored_copy_is_what_its_new_record_says(kit: Kit) -> None:
    """New versions over a marker; the `.json` still speaks of the first generation, and nothing is wrong."""
    record = kit.copy()
    kit.expire(record)
    kit.topic.append(replace(record, state=SegmentState.DELETE_FINISHED))
    restored = {}
    for kind, ref in record.objects.present():
        kit.store.copy_version(ref)
        restored[kind] = ref._replace(version_id=kit.store.head(ref.key).version_id)
    again = replace(record, generation=1, objects=SegmentObjects(**restored), event_id="restored")
    assert kit.topic.append(again) == []

    assert kit.scrub().counts == {ScrubOutcome.VERIFIED: 3}


def test_a_kit_in_memory_says_the_same(kit: Kit) -> None:
    """What the tests without a server rest on."""
    kit.copy()
    kit.copy(stored=lambda content: flip(content, CRC_COVERED))

    assert kit.scrub().counts == {ScrubOutcome.VERIFIED: 5, ScrubOutcome.FAILED: 1}
