"""A store that refuses, hangs, cuts or is not there is unclear, never missing; what goes on meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from rules.events import ScrubDepth, ScrubOutcome
from rules.identity import LogId
from tests.tiering.scrub.conftest import Wire
from tests.tiering.scrub.kit import Kit
from tests.tiering.scrub.trouble import Mode
from tests.tiering.store.memory import MemoryStore
from tiering.scrub.ports import Ask, Copy
from tiering.scrub.run import NO_ANSWER_MAX
from tiering.segments.errors import SegmentsTopicSilent
from tiering.segments.records import SegmentId, SegmentObjects, SegmentRecord, SegmentState
from tiering.store.errors import Denied, Missing, StoreError, Unavailable
from tiering.store.interface import ListedVersion, Stored
from tiering.store.patient import PatientStore, patient
from tiering.store.retry import RetryPolicy
from tiering.store.s3 import S3Store, S3StoreSettings


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "method"),
    [
        (Mode.SLOW_DOWN, ""),
        (Mode.DENIED, ""),
        (Mode.NOT_FOUND, ""),
        (Mode.HANG, ""),
        (Mode.CUT, "GET"),
    ],
)
def test_an_error_of_the_store_is_never_missing(wire: Wire, mode: Mode, method: str) -> None:
    """Whatever it answers, or not at all: nothing is said against any object, nothing is verified on it."""
    wire.kit.copy()
    wire.kit.objects = wire.hasty if mode is Mode.HANG else wire.through
    wire.trouble.spoil(mode, method=method)

    report = wire.kit.scrub()

    assert wire.trouble.spoilt > 0
    assert report.counts[ScrubOutcome.FAILED] == report.unknown_count == 0
    assert report.counts[ScrubOutcome.INCONCLUSIVE] > 0
    assert report.is_untold
    assert {each.problem for each in wire.kit.scrubbed if each.problem} == {"store_error"}


@pytest.mark.slow
def test_a_404_that_only_a_head_gives_is_no_finding(wire: Wire) -> None:
    """The listing has the object; the two contradict each other, and that is what is said."""
    wire.kit.copy()
    wire.kit.objects = wire.through
    wire.trouble.spoil(Mode.NOT_FOUND, method="HEAD", target=".aux")

    report = wire.kit.scrub(Ask(depth=ScrubDepth.LISTED))

    assert report.counts == {ScrubOutcome.VERIFIED: 2, ScrubOutcome.INCONCLUSIVE: 1}
    assert report.told[0].problem == "unsettled"


@pytest.mark.parametrize("kind", [Unavailable, Denied])
def test_a_copy_that_no_listing_of_this_run_had_is_asked_for(kit: Kit, kind: type[StoreError]) -> None:
    """Its log could not be listed: where it stands is what a HEAD says, and the store's word on it."""
    kit.copy()
    store = MemoryStore(kit.bucket)
    store.refuse("list versions", *[kind] * 10)
    kit.objects = patient(store, policy=RetryPolicy(attempts_max=10), sleep=lambda _: None)

    report = kit.scrub()

    assert (report.counts, report.unlisted_count) == ({ScrubOutcome.VERIFIED: 3}, 1)
    assert store.asked["head"] == 3


def test_what_goes_between_its_listing_and_its_look_is_found_all_the_same(kit: Kit) -> None:
    """Nobody said that it would: the read fails, a listing of the key says why, newer metadata does not."""
    record = kit.copy()
    ref = record.objects.log
    assert ref is not None
    assert kit.bucket is not None
    bucket = kit.bucket
    meddled = Meddled(kit.store, record)
    meddled.act = lambda: bucket.objects.pop(ref.key)
    kit.objects = meddled

    report = kit.scrub()

    assert report.counts == {ScrubOutcome.VERIFIED: 2, ScrubOutcome.FAILED: 1}
    assert kit.problems() == {"log": "missing"}


@pytest.mark.slow
def test_one_404_and_then_the_object_is_nothing(wire: Wire) -> None:
    """A benign look-alike: the listing settles what the first HEAD said."""
    wire.kit.copy()
    wire.kit.objects = wire.through
    wire.trouble.spoil(Mode.NOT_FOUND, method="HEAD", target=".aux", count=1)

    report = wire.kit.scrub(Ask(depth=ScrubDepth.LISTED))

    assert ScrubOutcome.FAILED not in report.counts
    assert wire.trouble.spoilt == 1


@pytest.mark.slow
def test_a_bucket_that_does_not_exist_has_lost_nothing(wire: Wire) -> None:
    """S3 answers 404 there as well: to a HEAD without a word more."""
    wire.kit.copy()
    settings = S3StoreSettings(
        bucket="no-such-bucket-anywhere",
        endpoint_url=wire.client.meta.endpoint_url,
        region="us-east-1",
        addressing_style="path",
    )
    store = S3Store(settings)
    store._client = wire.client  # with the server's own credentials
    wire.kit.objects = patient(store)

    report = wire.kit.scrub()

    assert report.counts == {ScrubOutcome.INCONCLUSIVE: 3}
    assert "NoSuchBucket" in report.told[0].detail


@pytest.mark.slow
def test_an_answer_that_is_cut_once_is_gone_on_with(wire: Wire) -> None:
    """Larger than a piece of the stream: from where it broke off, and the checksum is of the whole."""
    wire.kit.copy(value=b"v" * 200_000, batches=8)
    wire.kit.objects = wire.through
    wire.trouble.spoil(Mode.CUT, method="GET", target=".log", count=1)

    report = wire.kit.scrub()

    assert report.counts == {ScrubOutcome.VERIFIED: 3}
    assert report.settled_by_second_look == 0


class Meddled:
    """The store, and somebody who acts right before a request that concerns a key."""

    def __init__(self, store: PatientStore, record: SegmentRecord) -> None:
        self._store, self._stem = store, record.key_stem
        self.act: Callable[[], object] = lambda: None

    def _before(self, key: str) -> None:
        if key.startswith(self._stem):
            act, self.act = self.act, lambda: None
            act()

    def head(self, key: str, version_id: str | None = None) -> Stored:
        self._before(key)
        return self._store.head(key, version_id)

    def stream(self, key: str, version_id: str, start: int, end: int) -> Iterator[memoryview]:
        self._before(key)
        return self._store.stream(key, version_id, start, end)

    def list_versions(self, prefix: str) -> Iterator[ListedVersion]:
        return self._store.list_versions(prefix)


@pytest.mark.parametrize("depth", ScrubDepth)
def test_what_expires_while_it_is_looked_at_is_skipped(kit: Kit, depth: ScrubDepth) -> None:
    """Its objects go under markers between the listing and the look: the newer metadata says why."""
    record = kit.copy()
    kit.copy()
    meddled = Meddled(kit.store, record)
    meddled.act = lambda: kit.expire(record)
    kit.objects = meddled

    report = kit.scrub(Ask(depth=depth, workers=1))

    assert report.counts == {ScrubOutcome.SKIPPED: 3, ScrubOutcome.VERIFIED: 3}
    assert {each.problem for each in report.told} == {"removed_meanwhile"}
    assert not report.is_untold


def test_what_expires_before_its_log_is_listed_is_no_difference(kit: Kit) -> None:
    """The listing is newer than the table that it is held against: the table is read again."""
    record = kit.copy()
    kit.copy()
    done = False

    def expire() -> None:  # the table of the listing is from before, and what it says of it from behind
        nonlocal done
        if not done:
            done = True
            kit.topic.append(replace(record, state=SegmentState.DELETE_STARTED))

    kit.before_read_on = expire
    for kind in ("json", "aux", "log"):
        kit.store.mark_deleted(f"{record.key_stem}.{kind}")

    report = kit.scrub()

    assert report.counts == {ScrubOutcome.VERIFIED: 3}
    assert kit.inventory.deleted_keys == ()


def test_what_is_copied_while_its_log_is_listed_is_not_unknown(kit: Kit) -> None:
    """An attempt that began behind the table's end: its record is in the topic before its first byte."""
    kit.copy()
    late = kit.copy()
    known = kit.known

    def as_read(log: LogId) -> frozenset[SegmentId]:
        return known(log) if kit.reads_on else known(log) - {late.segment_id}

    def followed(log: LogId) -> Sequence[Copy]:
        return [each for each in finished(log) if kit.reads_on or each.segment_id != late.segment_id]

    finished = kit.finished
    kit.known, kit.finished = as_read, followed  # type: ignore[method-assign]

    report = kit.scrub()

    assert (report.unknown_count, kit.inventory.unknown_keys) == (0, ())
    assert report.counts == {ScrubOutcome.VERIFIED: 6}


def test_what_is_restored_while_it_is_looked_at_is_skipped(kit: Kit) -> None:
    """A version on top that is not the record's, and then the record of it."""
    record = kit.copy()
    meddled = Meddled(kit.store, record)

    def restore() -> None:
        restored = {}
        for kind, ref in record.objects.present():
            kit.store.mark_deleted(ref.key)
            kit.store.copy_version(ref)
            restored[kind] = ref._replace(version_id=kit.store.head(ref.key).version_id)
        deleting = replace(record, state=SegmentState.DELETE_STARTED)
        again = replace(record, generation=1, objects=SegmentObjects(**restored))
        kit.topic.append(deleting, replace(deleting, state=SegmentState.DELETE_FINISHED), again)

    meddled.act = restore
    kit.objects = meddled

    report = kit.scrub()

    assert report.counts == {ScrubOutcome.SKIPPED: 3}
    assert {each.problem for each in report.told} == {"changed_meanwhile"}
    kit.objects = None
    assert kit.scrub().counts == {ScrubOutcome.VERIFIED: 3}


def test_a_finding_is_not_said_on_metadata_that_could_not_be_read_again(kit: Kit) -> None:
    """It may have been removed since: unclear, and the run ends, with its reason."""
    record = kit.copy()
    kit.copy()

    def silent() -> None:
        if kit.reads_on > 1:  # past the listing
            raise SegmentsTopicSilent(what="__seawall_segments", act="read to its end", why="nobody answers")

    meddled = Meddled(kit.store, record)
    meddled.act = lambda: kit.store.mark_deleted(f"{record.key_stem}.log")
    kit.objects, kit.before_read_on = meddled, silent

    report = kit.scrub(Ask(workers=1))

    assert ScrubOutcome.FAILED not in report.counts
    assert report.counts[ScrubOutcome.INCONCLUSIVE] > 0
    assert report.stopped is not None
    assert "nobody answers" in report.stopped


def test_a_store_that_is_away_ends_the_run_soon(kit: Kit) -> None:
    """After so many segments in a row without an answer, one request of each; the rest is left, and told."""
    for _ in range(NO_ANSWER_MAX + 6):
        kit.copy()
    store = MemoryStore(kit.bucket)
    store.refuse("read", *[Unavailable] * 1000)
    kit.objects = patient(store, sleep=lambda _: None)

    report = kit.scrub(Ask(workers=1))

    assert report.stopped is not None
    assert NO_ANSWER_MAX <= report.segments < NO_ANSWER_MAX + 6
    assert report.segments + report.segments_left == NO_ANSWER_MAX + 6
    assert store.asked["read"] == 10 * report.segments  # the attempts of one request each


def test_one_object_that_may_not_be_read_ends_nothing(kit: Kit) -> None:
    """A refusal is an answer: the others are looked at."""
    records = [kit.copy() for _ in range(8)]
    denied = {record.key_stem for record in records[:7]}

    class Denying(Meddled):
        def stream(self, key: str, version_id: str, start: int, end: int) -> Iterator[memoryview]:
            if key.rpartition(".")[0] in denied:
                raise Denied(bucket="memory", key=key, operation="read", why="403")
            return super().stream(key, version_id, start, end)

    kit.objects = Denying(kit.store, records[0])

    report = kit.scrub()

    assert report.stopped is None
    assert report.counts == {ScrubOutcome.INCONCLUSIVE: 21, ScrubOutcome.VERIFIED: 3}


def test_a_finding_that_cannot_be_looked_at_again_is_unclear(kit: Kit) -> None:
    """The second look meets an error: what the first found is told with it, and not as a finding."""
    record = kit.copy()
    kit.store.mark_deleted(f"{record.key_stem}.log")
    asked = 0

    class Failing(Meddled):
        def list_versions(self, prefix: str) -> Iterator[ListedVersion]:
            nonlocal asked
            if prefix.endswith("/"):
                raise Denied(bucket="memory", key=prefix, operation="list versions", why="403")
            asked += 1
            if asked == 2:
                raise Unavailable(bucket="memory", key=prefix, operation="list versions", why="cut")
            return super().list_versions(prefix)

    kit.objects = Failing(kit.store, record)

    report = kit.scrub()

    assert report.counts == {ScrubOutcome.VERIFIED: 2, ScrubOutcome.INCONCLUSIVE: 1}
    assert "a first look had found: version" in report.told[0].detail
    assert [each.why for each in report.unlisted] == [
        f"list versions of '{kit.layout.log_prefix(record.log)}' in bucket memory is not allowed: 403"
    ]


@pytest.mark.parametrize("kind", [Missing, Denied])
def test_a_listing_that_fails_is_no_event(kit: Kit, kind: type[StoreError]) -> None:
    """The log counts as not listed, and the run as not told."""
    kit.copy()
    store = MemoryStore(kit.bucket)
    store.refuse("list versions", *[kind] * 1000)
    kit.objects = patient(store)

    report = kit.scrub(Ask(max_bytes=1))

    assert kit.events == []
    assert (report.unlisted_count, report.logs_listed, report.is_untold) == (1, 0, True)
