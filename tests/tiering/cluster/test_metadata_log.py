"""Following a metadata log through everything that a broker does to its files."""

from __future__ import annotations

import copy
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.cluster.corpus import Corpus
from tests.encode.record_batch import PlainRecord, encode_batch, uvarint
from tests.tiering.cluster.histories import Act, Model, acts, metadata_batch, uuid
from tests.tiering.cluster.metadata_disk import MetadataDisk, snapshot_bytes
from tests.tiering.cluster.test_fold import assert_is, tables
from tiering.cluster.image import Change, ClusterImage
from tiering.cluster.metadata_log import Loaded, MetadataLogFollower, Place, Poll, Rewound
from tiering.log.framed import SkippedRecord, SkipReason
from tiering.log.kraft.cluster import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    NoOpRecord,
)
from tiering.log.kraft.topics import TopicRecord

pytestmark = pytest.mark.slow

NOTHING = Place(next_offset=0, epochs=())


class Consumer:
    """What an observer does with the steps: keeps changes, withdraws what is rewound."""

    def __init__(self, directory: Path, resume: Place | None = None) -> None:
        self.follower = MetadataLogFollower(directory, resume=resume)
        self.kept: dict[int, Change] = {}
        self.image = ClusterImage()
        self.unseen: set[int] = set()

    def poll(self, *, committed: int = 0) -> Poll:
        """`committed` is what the quorum said before: what lies below is never withdrawn."""
        answer = self.follower.poll()
        for step in answer.steps:
            match step:
                case Change():
                    assert self.kept.get(step.offset) in (None, step)
                    self.kept[step.offset] = step
                case Rewound(to_offset=to_offset):
                    self._drop(max(to_offset, committed))
                case Loaded(image=image, unseen=unseen):
                    self.image = image
                    if unseen is not None:
                        self._drop(committed)
                        self.unseen |= set(range(min(committed, unseen[0]), unseen[1])) - set(self.kept)
        return answer

    def restart(self, directory: Path) -> None:
        self.follower = MetadataLogFollower(directory, resume=self.follower.place)

    def _drop(self, offset: int) -> None:
        self.kept = {at: change for at, change in self.kept.items() if change.decided_at < offset}


def test_changes_come_one_by_one_with_their_offsets(tmp_path: Path) -> None:
    """From an empty log on, each record is given once, with offset, epoch and time."""
    disk = MetadataDisk(tmp_path)
    consumer = Consumer(disk.directory)
    consumer.poll()

    disk.append(Model().create("orders", [(1, 2)]))
    answer = consumer.poll()

    assert answer.steps == tuple(disk.log)
    assert answer.caught_up
    assert [change.offset for change in disk.log] == [0, 1]
    assert consumer.follower.poll().steps == ()
    assert tables(consumer.follower.image) == tables(disk.image_at(2))


def test_a_new_follower_starts_at_the_newest_snapshot(tmp_path: Path) -> None:
    """It gives the snapshot's image, then the changes behind it, and nothing from before."""
    disk, model = MetadataDisk(tmp_path), Model()
    disk.append(model.create("orders", [(1, 2)]))
    disk.append(model.create("clicks", [(2, 1)]))
    disk.commit(4)
    disk.snapshot(2)
    disk.snapshot(4)
    disk.append(model.elect("orders", 0, 2, unclean=False))

    answer = MetadataLogFollower(disk.directory).poll()

    loaded, *behind = answer.steps
    assert isinstance(loaded, Loaded)
    assert (loaded.image.end_offset, loaded.unseen) == (4, None)
    assert tables(loaded.image) == tables(disk.image_at(4))
    assert behind == disk.log[4:]


def test_a_batch_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    """Half a batch at the end is no error and no change; whole, it is given."""
    disk = MetadataDisk(tmp_path)
    consumer = Consumer(disk.directory)
    disk.append([NoOpRecord()])
    disk.append_half([TopicRecord(name="a", topic_id=uuid(1))])

    half = consumer.poll()
    disk.finish_half()
    disk.append([TopicRecord(name="a", topic_id=uuid(1))])
    whole = consumer.poll()

    assert half.caught_up
    assert half.stopped is not None
    assert [step for step in half.steps if isinstance(step, Change)] == disk.log[:1]
    assert whole.steps == (disk.log[1],)
    assert whole.stopped is None


def test_truncated_records_are_withdrawn_and_replaced(tmp_path: Path) -> None:
    """The offset goes back to the fork, once, and what another controller wrote there is given instead."""
    disk = MetadataDisk(tmp_path)
    consumer = Consumer(disk.directory)
    disk.append([NoOpRecord()])
    disk.append([TopicRecord(name="lost", topic_id=uuid(1))])
    consumer.poll()

    disk.elect(keep_to=1)
    disk.append([TopicRecord(name="kept", topic_id=uuid(2))])
    answer = consumer.poll()

    assert answer.steps[0] == Rewound(to_offset=1)
    assert consumer.kept == {change.offset: change for change in disk.log}
    assert dict(consumer.follower.image.topic_ids) == {"kept": uuid(2)}


def test_truncation_is_told_before_the_log_is_as_long_as_it_was(tmp_path: Path) -> None:
    """A consumer must not go on believing in offset 2 until the new log has reached it."""
    disk = MetadataDisk(tmp_path)
    consumer = Consumer(disk.directory)
    for number in range(3):
        disk.append([TopicRecord(name=f"lost-{number}", topic_id=uuid(1 + number))])
    consumer.poll()

    disk.elect(keep_to=0)
    disk.append([NoOpRecord()])
    consumer.poll()

    assert consumer.kept == {0: disk.log[0]}


def test_the_lost_end_of_a_transaction_takes_its_records_with_it(tmp_path: Path) -> None:
    """They stand where they stood, below the fork, and count no longer: another controller aborts them."""
    disk = MetadataDisk(tmp_path)
    consumer = Consumer(disk.directory)
    disk.append([BeginTransactionRecord()])
    disk.append([TopicRecord(name="lost", topic_id=uuid(1))])
    disk.append([EndTransactionRecord()])
    consumer.poll()
    disk.commit(2)

    disk.elect(keep_to=2)
    disk.append([AbortTransactionRecord()])
    consumer.poll(committed=disk.committed)

    assert sorted(consumer.kept) == [0, 2]
    assert consumer.follower.image.topic_ids == {}


def test_a_snapshot_that_overtook_us_is_an_evidence_gap(tmp_path: Path) -> None:
    """What happened between our place and the snapshot is named as unseen; only its outcome is known."""
    disk, model = MetadataDisk(tmp_path), Model()
    consumer = Consumer(disk.directory)
    disk.append(model.create("orders", [(1, 2)]))
    consumer.poll()

    disk.append(model.elect("orders", 0, 2, unclean=False))
    disk.append(model.elect("orders", 0, 1, unclean=False))
    disk.commit(4)
    disk.snapshot(4)
    disk.replace_by_snapshot()
    disk.append(model.idle())
    consumer.poll(committed=2)

    assert consumer.unseen == {2, 3}
    assert sorted(consumer.kept) == [0, 1, 4]
    assert tables(consumer.follower.image) == tables(disk.image_at(5))


def test_a_consumer_goes_on_where_it_was(tmp_path: Path) -> None:
    """Restarted with its place it gets the image of then, and each later change once."""
    disk, model = MetadataDisk(tmp_path), Model()
    consumer = Consumer(disk.directory)
    disk.append(model.create("orders", [(1, 2)]))
    consumer.poll()
    disk.commit(2)
    disk.snapshot(2)
    disk.append(model.elect("orders", 0, 2, unclean=False))
    consumer.poll()
    place = consumer.follower.place
    disk.append(model.elect("orders", 0, 1, unclean=False))

    answer = MetadataLogFollower(disk.directory, resume=place).poll()

    loaded, *behind = answer.steps
    assert isinstance(loaded, Loaded)
    assert loaded.image.end_offset == 3
    assert tables(loaded.image) == tables(disk.image_at(3))
    assert behind == disk.log[3:]


def test_a_restart_finds_out_what_was_truncated_meanwhile(tmp_path: Path) -> None:
    """The kept epochs show that the log is not the one that was read."""
    disk = MetadataDisk(tmp_path)
    consumer = Consumer(disk.directory)
    disk.append([NoOpRecord()])
    disk.append([TopicRecord(name="lost", topic_id=uuid(1))])
    consumer.poll()

    disk.elect(keep_to=1)
    disk.append([NoOpRecord()])
    disk.append([NoOpRecord()])
    consumer.restart(disk.directory)
    consumer.poll()

    assert consumer.kept == {change.offset: change for change in disk.log}


def test_a_damaged_snapshot_is_passed_over_for_an_older_one(tmp_path: Path) -> None:
    """A snapshot without its footer was never finished: what it lacks is not known to be nothing."""
    disk, model = MetadataDisk(tmp_path), Model()
    disk.append(model.create("orders", [(1, 2)]))
    disk.append(model.idle())
    disk.commit(3)
    disk.snapshot(2)
    unfinished = disk.directory / f"{3:020d}-{1:010d}.checkpoint"
    unfinished.write_bytes(snapshot_bytes(ClusterImage(), footer=False))

    answer = MetadataLogFollower(disk.directory).poll()

    assert isinstance(answer.steps[0], Loaded)
    assert answer.steps[0].image.end_offset == 2
    assert answer.steps[1:] == tuple(disk.log[2:])


def test_damage_in_a_closed_segment_is_never_passed_over(tmp_path: Path) -> None:
    """Reading stops there, says so, and is not caught up, however long the log goes on behind it."""
    disk = MetadataDisk(tmp_path)
    disk.append([NoOpRecord()])
    disk.append([TopicRecord(name="a", topic_id=uuid(1))])
    disk.roll()
    disk.append([NoOpRecord()])
    path = disk.directory / f"{0:020d}.log"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(bytes(raw))

    answer = MetadataLogFollower(disk.directory, resume=NOTHING).poll()

    assert not answer.caught_up
    assert answer.stopped is not None
    assert "CRC" in answer.stopped
    assert [step for step in answer.steps if isinstance(step, Change)] == disk.log[:1]


def test_a_missing_segment_in_the_middle_stops_the_reading(tmp_path: Path) -> None:
    """The records of a lost segment are not skipped over: an image without them would answer wrongly."""
    disk = MetadataDisk(tmp_path)
    for number in range(3):
        disk.append([TopicRecord(name=f"t{number}", topic_id=uuid(1 + number))])
        disk.roll()
    (disk.directory / f"{1:020d}.log").unlink()

    answer = MetadataLogFollower(disk.directory, resume=NOTHING).poll()

    assert not answer.caught_up
    assert answer.stopped == f"{0:020d}.log ends at 1, not 2"


def test_offsets_that_jump_inside_a_segment_stop_the_reading(tmp_path: Path) -> None:
    """A metadata log has no holes; a batch that is not the next one is not taken for it."""
    disk = MetadataDisk(tmp_path)
    disk.append([NoOpRecord()])
    disk.append([NoOpRecord()])
    disk.append([TopicRecord(name="a", topic_id=uuid(1))])
    whole = (metadata_batch(batch) for batch in (disk.batches[0], disk.batches[2]))
    (disk.directory / f"{0:020d}.log").write_bytes(b"".join(whole))

    answer = MetadataLogFollower(disk.directory, resume=NOTHING).poll()

    assert not answer.caught_up
    assert answer.stopped is not None
    assert "batch at offset 2, not 1" in answer.stopped


def test_a_log_without_its_beginning_and_without_a_snapshot_is_not_read(tmp_path: Path) -> None:
    """An image without a base would answer, and wrongly."""
    disk = MetadataDisk(tmp_path)
    disk.append([NoOpRecord()])
    disk.roll()
    disk.append([NoOpRecord()])
    (disk.directory / f"{0:020d}.log").unlink()

    answer = MetadataLogFollower(disk.directory).poll()

    assert not answer.caught_up
    assert answer.steps == ()
    assert answer.stopped is not None
    assert "neither a snapshot nor a log from offset 0" in answer.stopped


def test_a_directory_that_is_not_there_is_told_and_not_raised(tmp_path: Path) -> None:
    """A host without the metadata log, or a disk that went away."""
    answer = MetadataLogFollower(tmp_path / "__cluster_metadata-0").poll()

    assert (answer.steps, answer.caught_up) == ((), False)
    assert answer.stopped is not None


def test_records_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    """A type of a later Kafka is passed on as what it is, and counted."""
    disk = MetadataDisk(tmp_path)
    follower = MetadataLogFollower(disk.directory)
    unknown = PlainRecord(offset=0, timestamp_ms=0, value=uvarint(1) + uvarint(999) + uvarint(0) + b"\0")
    (disk.directory / f"{0:020d}.log").write_bytes(encode_batch([unknown], leader_epoch=1))

    answer = follower.poll()

    skipped = SkippedRecord(api_key=999, version=0, reason=SkipReason.UNKNOWN_TYPE)
    assert follower.skipped.skipped == {skipped: 1}
    assert [step.record for step in answer.steps if isinstance(step, Change)] == [skipped]


@pytest.mark.parametrize(
    "state", ["nodes/stopped", "nodes/forked-divergent", "single/killed", "tiered/stopped"]
)
def test_the_metadata_logs_of_real_brokers_are_followed_to_their_end(corpus: Corpus, state: str) -> None:
    """Every node's directory, from its beginning and from its newest snapshot, leads to one image."""
    for directory in sorted((corpus.folder / state).glob("*/logs/__cluster_metadata-0")):
        from_start = Consumer(directory, resume=NOTHING)
        from_snapshot = Consumer(directory)

        answers = [from_start.poll(), from_snapshot.poll()]

        assert all(answer.caught_up and answer.stopped is None for answer in answers)
        assert tables(from_start.follower.image) == tables(from_snapshot.follower.image)
        assert sorted(from_start.kept) == list(range(from_start.follower.image.end_offset))
        assert from_start.unseen == set()


class Following(RuleBasedStateMachine):
    """A broker does to its files what it likes; a consumer that polls now and then is never told wrong."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.disk = MetadataDisk(self.folder)
        self.models = [Model()]  # the controller's memory after each batch: what is truncated never happened
        self.within = Model()  # as it will be when the open transaction has ended
        self.consumer = Consumer(self.disk.directory)
        self.committed_when_polled = 0
        self.poll()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @precondition(lambda self: self.disk.image_at(self.disk.end_offset).undecided is None)
    @rule(done=st.lists(acts(), min_size=1, max_size=4))
    def append(self, done: list[Act]) -> None:
        model = copy.deepcopy(self.models[-1])
        self._append([record for act in done for record in act(model)] or model.idle(), model)

    @precondition(lambda self: self.disk.image_at(self.disk.end_offset).undecided is None)
    @rule(done=st.lists(acts(), min_size=1, max_size=4))
    def begin_transaction(self, done: list[Act]) -> None:
        before, self.within = self.models[-1], copy.deepcopy(self.models[-1])
        records = [record for act in done for record in act(self.within)]
        self._append([BeginTransactionRecord(name="t")], before)
        self._append(records or self.within.idle(), before)

    @precondition(lambda self: self.disk.image_at(self.disk.end_offset).undecided)
    @rule(ended=st.booleans())
    def end_transaction(self, ended: bool) -> None:
        end = EndTransactionRecord() if ended else AbortTransactionRecord()
        self._append([end], self.within if ended else self.models[-1])

    @rule()
    def roll(self) -> None:
        self.disk.roll()

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        self.disk.commit(data.draw(st.sampled_from(self.disk.boundaries)))

    @rule(data=st.data())
    def elect(self, data: st.DataObject) -> None:
        kept = [offset for offset in self.disk.boundaries if offset >= self.disk.committed]
        self.disk.elect(keep_to=data.draw(st.sampled_from(kept)))
        self.models = self.models[: len(self.disk.batches) + 1]
        is_open = self.disk.image_at(self.disk.end_offset).undecided is not None
        self._append([AbortTransactionRecord() if is_open else NoOpRecord()], self.models[-1])

    @rule(data=st.data())
    def snapshot(self, data: st.DataObject) -> None:
        newest = max(self.disk.snapshot_ends, default=0)
        offsets = [
            offset
            for offset in self.disk.boundaries
            if newest < offset <= self.disk.committed and self.disk.image_at(offset).undecided is None
        ]
        if offsets:
            self.disk.snapshot(data.draw(st.sampled_from(offsets)))

    @rule()
    def delete_behind_snapshot(self) -> None:
        self.disk.delete_behind_snapshot()

    @precondition(lambda self: self.disk.snapshot_ends)
    @rule()
    def replace_by_snapshot(self) -> None:
        self.disk.replace_by_snapshot()

    @rule()
    def poll(self) -> None:
        on_disk = self._holds_all_from(self.consumer.follower.place.next_offset)
        answer = self.consumer.poll(committed=self.committed_when_polled)
        assert answer.caught_up, answer.stopped
        gaps = [step for step in answer.steps if isinstance(step, Loaded) and step.unseen is not None]
        assert not (on_disk and gaps) or any(isinstance(step, Rewound) for step in answer.steps)
        self.committed_when_polled = self.disk.committed
        self._was_told_the_truth()

    @rule()
    def poll_in_the_middle_of_a_write(self) -> None:
        self.disk.append_half([NoOpRecord()])
        self.poll()
        self.disk.finish_half()

    @rule()
    def restart(self) -> None:
        self.consumer.restart(self.disk.directory)

    @invariant()
    def what_was_committed_when_given_stays_true(self) -> None:
        truth = {change.offset: change for change in that_count(self.disk.log)}
        for offset, change in self.consumer.kept.items():
            assert change.decided_at >= self.committed_when_polled or truth[offset] == change

    def _append(self, records: list[Any], model: Model) -> None:
        self.disk.append(records)
        self.models.append(model)

    def _holds_all_from(self, offset: int) -> bool:
        """Whether an image of this offset can be made, and every record from there on be read."""
        first = self.disk.segment_bases[0]
        return any(first <= base <= offset for base in (0, *self.disk.snapshot_ends))

    def _was_told_the_truth(self) -> None:
        disk, consumer = self.disk, self.consumer
        counted = {change.offset: change for change in that_count(disk.log)}
        assert tables(consumer.follower.image) == tables(disk.image_at(disk.end_offset))
        assert_is_settled(consumer.follower.image, self.models[-1])
        assert {at: counted.get(at) for at in consumer.kept} == consumer.kept
        assert set(counted) - consumer.unseen == set(consumer.kept) - consumer.unseen


def that_count(log: list[Change]) -> list[Change]:
    """The changes outside of transactions, and those of transactions that have ended."""
    counted: list[Change] = []
    held: list[Change] | None = None
    for change in log:
        match change.record:
            case BeginTransactionRecord():
                counted.append(change)
                held = []
            case EndTransactionRecord():
                counted += [*(replace(each, decided_at=change.offset) for each in held or []), change]
                held = None
            case AbortTransactionRecord():
                counted.append(change)
                held = None
            case _ if held is not None:
                held.append(change)
            case _:
                counted.append(change)
    return counted


def assert_is_settled(image: ClusterImage, model: Model) -> None:
    """As `assert_is`, where no transaction is open: an open one's acts are in the model of its end only."""
    if image.undecided is None:
        assert_is(image, model)


TestFollowing = Following.TestCase
TestFollowing.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
