"""The topic told again from a bucket: equal to the byte, or the difference has a name."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from rules.identity import LogId
from tests.tiering.segments.strategies import CLUSTER_ID, LOG, OTHER_LOG, log_record, segment
from tests.tiering.segments.topic import Topic, new_table
from tests.tiering.store.hands import Hands
from tests.tiering.store.memory import Bucket, MemoryStore
from tiering.segments.bucket_listing import list_segments
from tiering.segments.codec import encode_segment
from tiering.segments.rebuild import Comparison, Kind, Retold, compare, retell_all
from tiering.segments.records import EpochStart, SegmentObjects, SegmentRecord, SegmentState
from tiering.segments.table import ReferenceTable, TopicRecord
from tiering.store.content import InMemory
from tiering.store.keys import KeyLayout
from tiering.store.patient import PatientStore
from tiering.store.retry import Retrier, RetryPolicy
from tiering.store.upload import Uploader

STARTED, FINISHED, DELETING, DELETED = SegmentState
KEYS = KeyLayout("seawall")


@dataclass
class Tier:
    """A bucket and a topic, filled as a copy fills them."""

    bucket: Bucket = field(default_factory=Bucket)
    topic: Topic = field(default_factory=Topic)

    def __post_init__(self) -> None:
        hands = Hands()
        retrier = Retrier(RetryPolicy(), clock=hands.clock, sleep=hands.sleep, random=random.random)
        self.store = PatientStore(MemoryStore(self.bucket), retrier)
        self.uploader = Uploader(self.store)

    def stored(self, record: SegmentRecord) -> SegmentRecord:
        """Put the three objects; the record as it is to be published."""
        stem = record.key_stem
        refs = SegmentObjects(
            log=self.uploader.upload_bytes(f"{stem}.log", bytes(record.size_bytes)),
            aux=self.uploader.upload_bytes(f"{stem}.aux", b"aux"),
        )
        unnamed = replace(record, state=FINISHED, objects=refs)
        json = self.uploader.upload_bytes(f"{stem}.json", encode_segment(unnamed))
        return replace(unnamed, objects=replace(refs, json=json))

    def copy(self, record: SegmentRecord) -> SegmentRecord:
        self.topic.append(replace(record, state=STARTED, objects=SegmentObjects()))
        finished = self.stored(record)
        self.topic.append(finished)
        return finished

    def delete(self, record: SegmentRecord, *kinds: str) -> None:
        for kind in kinds:
            self.uploader.mark_deleted(f"{record.key_stem}.{kind}")

    def compare(self, log: LogId = LOG) -> Comparison:
        listed = list_segments(self.store, KEYS, KEYS.log_prefix(log))
        return compare(listed, ReferenceTable([self.topic.table]), [log])


@pytest.fixture
def tier() -> Iterator[Tier]:
    filled = Tier()
    filled.topic.claim(log_record(0))
    yield filled
    filled.uploader.close()


def _kinds(found: Comparison) -> list[Kind]:
    return [each.kind for each in found.differences]


def test_a_bucket_alone_tells_the_topic_again(tier: Tier) -> None:
    """Every finished record of every log, to the byte: a table of what is told has the live one's members."""
    for number in range(300):
        tier.copy(segment(number, 10 * number, 10 * number + 10))
    tier.copy(segment(1000, 0, 5, log=OTHER_LOG))

    told = list(retell_all(list_segments(tier.store, KEYS, KEYS.cluster_prefix(CLUSTER_ID))))

    anew = new_table(complete_from=len(told))
    for offset, each in enumerate(told):
        assert isinstance(each, Retold)
        anew.apply_many([TopicRecord(offset, each.key, each.value)])
    own = f"{LOG.topic_id}:{LOG.partition}"
    live = tuple(each for each in tier.topic.table.members(LOG) if each[0] != own)
    assert anew.members(LOG) == live
    assert anew.members(OTHER_LOG) == tier.topic.table.members(OTHER_LOG)


def test_a_bucket_and_a_topic_that_agree_are_equal(tier: Tier) -> None:
    """Each segment is counted, and so is nothing else: other logs, a copy that only began."""
    for number in range(3):
        tier.copy(segment(number, 10 * number, 10 * number + 10))
    tier.copy(segment(9, 0, 5, log=OTHER_LOG))
    tier.topic.append(segment(5, 30, 40, state=STARTED))

    found = tier.compare()

    assert (found.is_equal, found.equal) == (True, 3)


def _unconfirmed(tier: Tier) -> None:
    tier.topic.append(segment(1, 0, 10, state=STARTED))
    tier.stored(segment(1, 0, 10))


def _fenced(tier: Tier) -> None:
    tier.topic.claim(log_record(5, epochs=((0, 0),)))
    tier.copy(segment(1, 0, 10, leader_epoch=0))


def _deleting(tier: Tier) -> None:
    tier.topic.append(replace(tier.copy(segment(1, 0, 10)), state=DELETING))


def _restored(tier: Tier) -> None:
    tier.topic.append(replace(tier.copy(segment(1, 0, 10)), generation=1))


def _other_content(tier: Tier) -> None:
    record = segment(1, 0, 10)
    tier.topic.append(replace(record, state=STARTED, objects=SegmentObjects()))
    finished = tier.stored(record)
    tier.topic.append(replace(finished, event_id="another"))


def _json_deleted(tier: Tier) -> None:
    tier.delete(tier.copy(segment(1, 0, 10)), "json")


def _json_missing(tier: Tier) -> None:
    tier.topic.copy(segment(1, 0, 10))


def _json_broken(tier: Tier) -> None:
    record = segment(1, 0, 10)
    content = InMemory(b"{}")
    tier.store.put_new(f"{record.key_stem}.json", content, content.checksum)


def _json_of_another(tier: Tier) -> None:
    content = InMemory(encode_segment(replace(segment(1, 0, 10), objects=SegmentObjects(), state=STARTED)))
    tier.store.put_new(f"{segment(2, 0, 10).key_stem}.json", content, content.checksum)


def _log_deleted(tier: Tier) -> None:
    tier.delete(tier.copy(segment(1, 0, 10)), "log")


@pytest.mark.parametrize(
    ("spoil", "kind", "detail"),
    [
        (_unconfirmed, Kind.UNCONFIRMED, "not finished"),
        (lambda tier: tier.stored(segment(1, 0, 10)), Kind.NOT_IN_TOPIC, "nothing of it"),
        (_fenced, Kind.NOT_FOLLOWED, "fenced"),
        (_deleting, Kind.DELETING, "DELETE_STARTED"),
        (_restored, Kind.OTHER_GENERATION, "generation 1, and the .json is of 0"),
        (_other_content, Kind.OTHER_CONTENT, "event_id event-1-COPY_FINISHED and another"),
        (_json_deleted, Kind.JSON_DELETED, "delete marker"),
        (_json_missing, Kind.JSON_MISSING, "no version"),
        (_json_broken, Kind.JSON_UNREADABLE, ".json"),
        (_json_of_another, Kind.JSON_UNREADABLE, "it is the record of"),
        (_log_deleted, Kind.OBJECT_MISSING, r".log version"),
    ],
)
def test_each_difference_has_a_name(
    tier: Tier, spoil: Callable[[Tier], object], kind: Kind, detail: str
) -> None:
    """One thing wrong is one difference, beside copies that are equal."""
    tier.copy(segment(8, 80, 90))
    spoil(tier)

    found = tier.compare()

    assert _kinds(found) == [kind]
    assert detail in found.differences[0].detail
    assert found.equal == 1


def test_a_deleted_copy_is_no_difference(tier: Tier) -> None:
    """Both sides agree that it is gone, its versions in the bucket notwithstanding."""
    finished = tier.copy(segment(1, 0, 10))
    for state in (DELETING, DELETED):
        tier.topic.append(replace(finished, state=state))
    tier.delete(finished, "json", "aux", "log")

    assert tier.compare().is_equal


def test_a_topic_that_lost_everything_is_all_differences(tier: Tier) -> None:
    """Nothing in the topic, everything in the bucket: each segment is named, and can be told again."""
    tier.copy(segment(1, 0, 10))
    tier.copy(segment(2, 10, 20, epochs=((0, 10), (1, 15))))
    tier.topic = Topic()

    listed = list(list_segments(tier.store, KEYS, KEYS.log_prefix(LOG)))

    assert _kinds(tier.compare()) == [Kind.NOT_IN_TOPIC] * 2
    told = [each for each in retell_all(listed) if isinstance(each, Retold)]
    assert [each.record.leader_epochs[-1] for each in told] == [EpochStart(0, 0), EpochStart(1, 15)]


def test_strange_keys_are_heard_of_and_passed_over(tier: Tier) -> None:
    """Whatever others put under the prefix is no segment."""
    tier.copy(segment(1, 0, 10))
    strange = InMemory(b"?")
    tier.store.put_new(f"{KEYS.log_prefix(LOG)}notes.txt", strange, strange.checksum)
    heard: list[str] = []

    listed = list(list_segments(tier.store, KEYS, KEYS.log_prefix(LOG), on_strange=heard.append))

    assert len(listed) == 1
    assert heard == [f"{KEYS.log_prefix(LOG)}notes.txt"]


def test_what_is_told_again_is_of_the_version_that_was_listed(tier: Tier) -> None:
    """An overwritten .json, which nobody of ours can make, is another version than the topic's."""
    finished = tier.copy(segment(1, 0, 10))
    tier.delete(finished, "json")
    content = InMemory(encode_segment(replace(finished, objects=replace(finished.objects, json=None))))
    tier.store.put_new(f"{finished.key_stem}.json", content, content.checksum)

    found = tier.compare()

    assert _kinds(found) == [Kind.OTHER_CONTENT]
    assert "objects" in found.differences[0].detail
