"""The fold of the metadata log: against a model of a cluster, and against Kafka's own snapshots."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cluster.corpus import Corpus
from tests.tiering.cluster.histories import Act, Model, acts, changes, in_transaction, uuid
from tiering.cluster.fold import Decider, fold
from tiering.cluster.image import Change, ClusterImage, ConfigKey, PartitionKey
from tiering.cluster.metadata_files import list_metadata_directory, read_batches, read_snapshot
from tiering.log.errors import LogFormatError
from tiering.log.framed import SkippedRecord, SkipReason
from tiering.log.kraft.cluster import BeginTransactionRecord, NoOpRecord
from tiering.log.kraft.records import MetadataRecord
from tiering.log.kraft.topics import (
    ConfigResource,
    LeaderRecovery,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

TABLES = ("topics", "topic_ids", "partitions", "configs", "brokers")


def tables(image: ClusterImage) -> dict[str, Any]:
    return {name: dict(getattr(image, name)) for name in TABLES}


def without_leaked(image: ClusterImage) -> ClusterImage:
    """A broker that takes up a topic's creation and its removal at once, as a busy one does, forgets to
    remove the settings: they stand in its snapshots, and in no other's."""
    named = {key: each for key, each in image.configs.items() if not _is_of_nobody(image, key)}
    return replace(image, configs=named)


def _is_of_nobody(image: ClusterImage, key: ConfigKey) -> bool:
    return key.resource == ConfigResource.TOPIC and key.name not in image.topic_ids


def assert_is(image: ClusterImage, model: Model) -> None:
    """The image and the model tell the same."""
    assert image.unread is None
    assert dict(image.topic_ids) == {name: topic_id for name, (topic_id, _) in model.topics.items()}
    assert dict(image.topics) == {topic_id: name for name, (topic_id, _) in model.topics.items()}
    assert {key: dict(entries) for key, entries in image.configs.items()} == model.configs
    assert {each.broker_id: (each.broker_epoch, each.fenced) for each in image.brokers.values()} == (
        model.brokers
    )
    told = {
        key: (s.replicas, s.directories, s.isr, s.leader_id, s.leader_epoch, s.partition_epoch, s.recovery)
        for key, s in image.partitions.items()
    }
    assert told == {
        PartitionKey(topic_id, number): (
            p.replicas,
            p.directories,
            p.isr,
            p.leader,
            p.leader_epoch,
            p.partition_epoch,
            LeaderRecovery.RECOVERING if p.unclean else LeaderRecovery.RECOVERED,
        )
        for topic_id, partitions in model.topics.values()
        for number, p in enumerate(partitions)
    }


@given(st.lists(acts(), max_size=30))
def test_the_image_is_what_the_controller_did(history: list[Act]) -> None:
    """After any history of topics, elections, reassignments, configs and brokers, image and model agree."""
    model, records = Model(), list[MetadataRecord]()
    for act in history:
        records += act(model)

    image = fold(ClusterImage(), changes(records))

    assert_is(image, model)


@given(st.lists(acts(), max_size=20), st.data())
def test_folding_in_pieces_is_folding_at_once(history: list[Act], data: st.DataObject) -> None:
    """Wherever a log is cut, the pieces lead to the same image, and none of them alters the one before."""
    model, records = Model(), list[MetadataRecord]()
    for act in history:
        records += act(model)
    log = changes(records)
    at = data.draw(st.integers(0, len(log)))
    half = fold(ClusterImage(), log[:at])
    before = tables(half)

    whole = fold(half, log[at:])

    assert whole == fold(ClusterImage(), log)
    assert tables(half) == before


@pytest.mark.slow
@given(st.lists(acts(), max_size=10), st.lists(acts(), max_size=10), st.booleans())
def test_a_transaction_counts_when_it_has_ended_and_never_when_aborted(
    before: list[Act], inside: list[Act], ended: bool
) -> None:
    """Until its end nothing of it shows; an aborted one leaves the image as it was (KIP-868)."""
    model, known = Model(), list[MetadataRecord]()
    for act in before:
        known += act(model)
    settled = fold(ClusterImage(), changes(known))
    held = [record for act in inside for record in act(model)]
    log = changes(in_transaction(held, ended=ended), start=settled.end_offset)

    while_open = fold(settled, log[:-1])
    after = fold(while_open, log[-1:])

    assert tables(while_open) == tables(settled)
    assert while_open.undecided == tuple(log[1:-1])
    assert after.undecided is None
    if ended:
        assert_is(after, model)
    else:
        assert tables(after) == tables(settled)


def test_the_changes_of_a_transaction_come_in_order_once_it_has_ended() -> None:
    """A consumer of changes sees what the fold sees, when the fold sees it."""
    log = changes(in_transaction([TopicRecord(name="a", topic_id=uuid(1)), NoOpRecord()], ended=True))
    decider = Decider()

    given_out = [decider.take(change) for change in log]

    decided = (replace(log[1], decided_at=3), replace(log[2], decided_at=3), log[3])
    assert given_out == [(log[0],), (), (), decided]
    assert decider.undecided is None


def test_a_topic_made_anew_is_another_topic() -> None:
    """Same name, other id: the old one's partitions and configs are gone, the new one's are its own."""
    model = Model()
    records = [
        *model.create("orders", [(1, 2), (2, 1)]),
        *model.configure(2, "orders", "retention.ms", "1000"),
        *model.remove("orders"),
        *model.create("orders", [(3,)]),
    ]

    image = fold(ClusterImage(), changes(records))

    assert dict(image.topics) == {uuid(2): "orders"}
    assert image.partitions_of(uuid(1)) == {}
    assert [state.replicas for state in image.partitions_of(uuid(2)).values()] == [(3,)]
    assert ConfigKey(2, "orders") not in image.configs


ORPHAN = PartitionChangeRecord(partition_id=0, topic_id=uuid(9), leader=1)


@pytest.mark.parametrize(
    "record",
    [
        ORPHAN,
        RemoveTopicRecord(topic_id=uuid(9)),
        SkippedRecord(api_key=PartitionRecord.api_key, version=99, reason=SkipReason.NEWER_VERSION),
        SkippedRecord(api_key=BeginTransactionRecord.api_key, version=9, reason=SkipReason.NEWER_VERSION),
    ],
    ids=lambda record: type(record).__name__,
)
def test_an_image_that_may_lack_something_says_so_for_ever(record: Any) -> None:
    """A change of what is not there, or a record too new to read, is never passed over in silence."""
    model = Model()
    log = changes([*model.create("orders", [(1,)]), record, NoOpRecord()])

    image = fold(ClusterImage(), log)

    assert image.unread is not None
    assert "metadata offset 2" in image.unread


@pytest.mark.parametrize("reason", [SkipReason.UNKNOWN_TYPE, SkipReason.CREDENTIALS])
def test_a_record_that_the_image_does_not_hold_leaves_no_doubt(reason: SkipReason) -> None:
    """What no version of this image has ever held cannot be missing from it."""
    skipped = SkippedRecord(api_key=11, version=0, reason=reason)

    image = fold(ClusterImage(), changes([skipped]))

    assert image.unread is None
    assert image.end_offset == 1


def log_of(directory: Any) -> list[Change]:
    found: list[Change] = []
    for segment in list_metadata_directory(directory).segments:
        for batch in read_batches(segment.path):
            assert not isinstance(batch, LogFormatError)
            found += batch.changes
    return found


def test_the_image_of_a_log_is_kafkas_own_snapshot_of_it(corpus: Corpus) -> None:
    """Wherever a real broker took a snapshot, folding the log up to there gives what the snapshot holds."""
    directory = corpus.log_dirs("single/stopped")[0] / "__cluster_metadata-0"
    log = log_of(directory)
    snapshots = list_metadata_directory(directory).snapshots

    for snapshot in snapshots:
        of_log = fold(ClusterImage(), [each for each in log if each.offset < snapshot.end_offset])
        of_snapshot = fold(ClusterImage(), read_snapshot(snapshot))
        assert tables(of_log) == tables(without_leaked(of_snapshot))
        assert of_log.unread is None

    assert len(snapshots) >= 3


def test_the_elections_of_real_brokers_are_the_epochs_on_their_disks(corpus: Corpus) -> None:
    """The leader epoch that the fold counts is the one that the brokers wrote beside their data."""
    log = log_of(corpus.log_dirs("nodes/stopped", 1)[0] / "__cluster_metadata-0")
    image = fold(ClusterImage(), log)
    state = image.partitions[PartitionKey(image.topic_ids["many-epochs"], 0)]

    on_disk = max(
        int(
            (corpus.partition("many-epochs", state="nodes/stopped", node_id=node) / "leader-epoch-checkpoint")
            .read_text()
            .split()[-2]
        )
        for node in (1, 2, 3)
    )

    # The last stop, of all brokers at once, ends in elections whose leaders wrote nothing any more.
    assert 3 <= on_disk <= state.leader_epoch
    assert set(state.replicas) == {1, 2, 3}
    assert "strayed" not in image.topic_ids
