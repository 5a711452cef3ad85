"""What the observer of the metadata log says, of logs written on purpose."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit_engine.observers.kraft.memory import FILE_NAME
from audit_engine.observers.kraft.sight import Scope
from rules.events import (
    ConfigEffective,
    ConfigSource,
    EvidenceGap,
    IsrChanged,
    LeaderChanged,
    PartitionsAdded,
    ReplicaAdded,
    ReplicaRemoved,
    Source,
    TopicCreated,
    TopicDeleted,
)
from tests.audit_engine.observers.kraft.world import Watched, dated, expected, known_of, replayed
from tests.tiering.cluster.histories import T0_MS, Model, in_transaction, uuid
from tiering.log.kraft.topics import ConfigResource, PartitionRecord

TOPIC = ConfigResource.TOPIC


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


@pytest.fixture
def model() -> Model:
    return Model()


def begun(watched: Watched, model: Model) -> None:
    """A cluster of one topic, told."""
    watched.write(model.create("orders", [(1, 2)]))
    watched.look()
    watched.told.events.clear()


def test_what_stands_at_the_first_start_is_a_baseline_and_no_change(watched: Watched, model: Model) -> None:
    """Coalesced, without an earlier look; and that of a log is the same as that of its snapshot."""
    watched.write(model.create("orders", [(1, 2), (2, 1)]))
    watched.write(model.configure(TOPIC, "orders", "retention.ms", "1000"))
    watched.write(model.elect("orders", 0, 2, unclean=False))

    said = watched.look()

    created, *leaders, config = said
    assert isinstance(created, TopicCreated)
    assert isinstance(config, ConfigEffective)
    assert (created.partition_count, created.is_coalesced, created.not_before_ms) == (2, True, None)
    assert [each.leader_epoch for each in leaders if isinstance(each, LeaderChanged)] == [1, 0]
    assert config.is_first_sight
    assert config.old_value is None
    assert replayed(said) == known_of(watched.disk.image_at(watched.disk.end_offset))
    assert watched.look() == []


def test_changes_are_told_at_their_offsets_with_their_own_times(watched: Watched, model: Model) -> None:
    """Old value and new, epoch, ISR and recovery: the log dates each of them."""
    begun(watched, model)
    start = watched.disk.end_offset
    watched.write(model.configure(TOPIC, "orders", "retention.ms", "1000"))
    watched.write(model.configure(TOPIC, "orders", "retention.ms", "-1"))
    watched.write(model.configure(TOPIC, "orders", "retention.ms", None))
    watched.write(model.elect("orders", 0, 2, unclean=True))
    watched.write(model.shrink("orders", 0, (1, 2)))

    said = watched.look()

    values = [(e.old_value, e.new_value) for e in said if isinstance(e, ConfigEffective)]
    assert values == [(None, "1000"), ("1000", "-1"), ("-1", None)]
    leader, isr = said[3:]
    assert isinstance(leader, LeaderChanged)
    assert (leader.leader_id, leader.leader_epoch, leader.is_unclean, leader.isr) == (2, 1, True, (2,))
    assert isinstance(isr, IsrChanged)
    assert (isr.isr, isr.leader_epoch) == ((1, 2), 1)
    for at, event in enumerate(said, start):
        assert event.occurred_at_ms == T0_MS + at
        assert event.metadata_offset == at  # type: ignore[attr-defined]
        assert not event.is_coalesced  # type: ignore[attr-defined]
        assert event.source is Source.KRAFT  # type: ignore[attr-defined]


def test_a_topic_made_anew_is_another_and_its_settings_are_not_the_old_ones(
    watched: Watched, model: Model
) -> None:
    """Deleted under its old id, created under a new one; the new value has no old one."""
    watched.write(model.create("orders", [(1,)]))
    watched.write(model.configure(TOPIC, "orders", "retention.ms", "5"))
    watched.look()
    watched.write(model.remove("orders"))
    watched.write(model.create("orders", [(2,)]))
    watched.write(model.configure(TOPIC, "orders", "retention.ms", "7"))

    deleted, created, leader, config = watched.look()

    assert isinstance(deleted, TopicDeleted)
    assert isinstance(created, TopicCreated)
    assert isinstance(leader, LeaderChanged)
    assert isinstance(config, ConfigEffective)
    assert deleted.topic_id != created.topic_id == config.topic_id
    assert (config.old_value, config.new_value, config.is_first_sight) == (None, "7", False)


def test_partitions_and_replicas_are_told_as_they_are_assigned(watched: Watched, model: Model) -> None:
    """More partitions once, whatever their number; each broker that comes or goes."""
    begun(watched, model)
    more = [
        PartitionRecord(
            partition_id=number,
            topic_id=uuid(1),
            replicas=(2, 1),
            isr=(2, 1),
            removing_replicas=(),
            adding_replicas=(),
            leader=2,
            leader_epoch=0,
            partition_epoch=0,
        )
        for number in (1, 2)
    ]
    watched.write(more)
    watched.write(model.reassign("orders", 0, (2, 3)))

    said = watched.look()

    [added] = [each for each in said if isinstance(each, PartitionsAdded)]
    assert (added.old_partition_count, added.partition_count) == (1, 3)
    [came] = [each for each in said if isinstance(each, ReplicaAdded)]
    [went] = [each for each in said if isinstance(each, ReplicaRemoved)]
    assert (came.broker_id, went.broker_id, came.replicas) == (3, 1, (2, 3))


def test_only_what_is_committed_is_told(watched: Watched, model: Model) -> None:
    """Read and not committed it waits; truncated it was never there; what replaces it is told."""
    begun(watched, model)
    base = watched.disk.end_offset
    watched.disk.append(model.configure(TOPIC, "orders", "retention.ms", "1"))
    assert watched.look() == []

    watched.disk.elect(keep_to=base)
    watched.disk.append(Model(topics=model.topics).idle())
    watched.disk.append(model.configure(TOPIC, "orders", "retention.ms", "2"))
    assert watched.look() == []
    watched.disk.commit(watched.disk.end_offset)

    [config] = watched.look()

    assert isinstance(config, ConfigEffective)
    assert (config.old_value, config.new_value, config.metadata_offset) == (None, "2", base + 1)


def test_a_watermark_of_an_epoch_that_is_not_read_yet_says_nothing(watched: Watched, model: Model) -> None:
    """The new leader's log may differ just where its watermark already is."""
    begun(watched, model)
    base = watched.disk.end_offset
    watched.disk.append(model.configure(TOPIC, "orders", "retention.ms", "1"))
    watched.disk.epoch += 1  # elected elsewhere: this copy has not heard of it
    watched.disk.committed = base + 1
    assert watched.look() == []
    watched.disk.epoch -= 1

    assert len(watched.look()) == 1


def test_without_the_quorums_word_a_snapshot_is_the_bound(watched: Watched, model: Model) -> None:
    """All below its end is told, the rest waits; and why is said."""
    begun(watched, model)
    watched.write(model.configure(TOPIC, "orders", "retention.ms", "1"))
    snapshot_at = watched.disk.end_offset
    watched.write(model.configure(TOPIC, "orders", "retention.ms", "2"))
    watched.quorum_answers = False
    assert watched.look() == []
    assert watched.observer.trouble == "", "an election passes"
    assert watched.look() == []
    assert "nobody answers" in watched.observer.trouble

    watched.disk.snapshot(snapshot_at)

    assert [each.new_value for each in watched.look() if isinstance(each, ConfigEffective)] == ["1"]
    watched.quorum_answers = True
    assert [each.new_value for each in watched.look() if isinstance(each, ConfigEffective)] == ["2"]
    assert watched.observer.trouble == ""


@pytest.mark.parametrize("is_restarted", [False, True])
def test_what_a_snapshot_swallowed_is_a_gap_and_a_coalesced_difference(
    watched: Watched, model: Model, is_restarted: bool
) -> None:
    """The flap inside it is gone, its outcome is told, and where nobody looked is said, to the offset."""
    begun(watched, model)
    told_to = watched.disk.end_offset
    watched.write(model.configure(TOPIC, "orders", "retention.ms", "1"))
    watched.write(model.configure(TOPIC, "orders", "retention.ms", "3"))
    watched.write(model.create("clicks", [(1,)]))
    watched.disk.snapshot(watched.disk.end_offset)
    overtaken_to = watched.disk.end_offset
    watched.disk.replace_by_snapshot()
    watched.write(model.elect("orders", 0, 2, unclean=False))
    if is_restarted:
        watched.restart()

    gap, created, clicks, config, elected = watched.look()

    assert isinstance(gap, EvidenceGap)
    assert (gap.problem, gap.gap_start, gap.gap_end) == ("metadata_overtaken", told_to, overtaken_to)
    assert isinstance(created, TopicCreated)
    assert isinstance(clicks, LeaderChanged)
    assert isinstance(config, ConfigEffective)
    assert (config.old_value, config.new_value, config.is_coalesced) == (None, "3", True)
    assert config.not_before_ms == T0_MS + told_to - 1
    assert isinstance(elected, LeaderChanged)
    assert (elected.is_coalesced, elected.metadata_offset) == (False, overtaken_to)


def test_committed_records_that_are_gone_are_a_gap(watched: Watched, model: Model) -> None:
    """A quorum that lost what it had committed: said, then compared with what now stands."""
    begun(watched, model)
    keep_to = watched.disk.end_offset
    watched.write(model.configure(TOPIC, "orders", "retention.ms", "1"))
    watched.write(model.configure(TOPIC, "orders", "retention.bytes", "2"))
    watched.look()
    watched.told.events.clear()
    watched.disk.committed = 0
    watched.disk.elect(keep_to=keep_to)
    watched.write(model.idle())
    watched.look()
    watched.look()

    gap, *configs = watched.told.events

    assert isinstance(gap, EvidenceGap)
    assert gap.problem == "committed_metadata_lost"
    assert {(e.key, e.new_value) for e in configs if isinstance(e, ConfigEffective)} == {
        ("retention.ms", None),
        ("retention.bytes", None),
    }


def test_a_transaction_is_told_when_its_end_is_committed(watched: Watched, model: Model) -> None:
    """Its records stand below the watermark and count for nothing before; an aborted one never does."""
    begun(watched, model)
    begin, *records, end = in_transaction(model.create("clicks", [(1,), (2,)]), ended=True)
    aborted = in_transaction(Model(ids_used=7).create("never", [(1,)]), ended=False)
    watched.write(aborted)
    watched.write([begin])
    for each in records:
        watched.write([each])
    assert watched.look() == []
    watched.restart()
    watched.write([end])

    created, *leaders = watched.look()

    assert isinstance(created, TopicCreated)
    assert created.partition_count == 2
    assert len(leaders) == 2


def test_a_kill_between_keeping_and_emitting_loses_and_doubles_nothing(
    watched: Watched, model: Model
) -> None:
    """At every event: what was not out comes with the next process, under the same ids."""
    watched.write(model.create("orders", [(1, 2), (2, 1)]))
    for kill_at in (0, 1, 2):
        watched.killed_after(kill_at)
    for number in range(4):
        watched.write(model.configure(TOPIC, "orders", "retention.ms", str(number)))
        watched.write(model.elect("orders", 1, 1 + number % 2, unclean=False))
        watched.killed_after(number % 3)
    watched.look()

    image = watched.disk.image_at(watched.disk.end_offset)
    assert replayed(watched.told.once) == known_of(image)
    wanted = {at: said for at, said in expected(watched.disk).items() if said and at >= 3}
    assert dated(watched.told.once) == wanted


def test_two_hosts_say_equal_events_of_the_same_log(tmp_path: Path) -> None:
    """Whoever began earlier, or was cut otherwise: one id is one event."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other, model = Watched(tmp_path / "a"), Watched(tmp_path / "b"), Model()
    for records in (model.create("orders", [(1, 2)]), model.idle()):
        one.write(records)
        other.write(records)
    one.look()
    other.look()
    for number in range(3):
        for records in (
            model.elect("orders", 0, 1 + number % 2, unclean=False),
            model.configure(TOPIC, "orders", "a", str(number)),
        ):
            one.write(records)
            other.write(records)
            one.look()
    other.look()

    assert one.told.once == other.told.once


def test_a_damaged_memory_is_set_aside_and_said(watched: Watched, model: Model) -> None:
    """A gap, then the state as it is: nothing is compared with what cannot be relied on."""
    begun(watched, model)
    watched.observer.close()
    (watched.folder / FILE_NAME).write_bytes(b"no database" * 400)
    watched.restart()

    gap, created, _ = watched.look()

    assert isinstance(gap, EvidenceGap)
    assert gap.problem == "memory_lost"
    assert isinstance(created, TopicCreated)
    assert created.is_coalesced


def test_secrets_are_neither_told_nor_kept(watched: Watched, model: Model) -> None:
    """That a password was set is told; what it is stands in no event and in no file of ours."""
    begun(watched, model)
    watched.write(model.configure(ConfigResource.BROKER, "1", "ssl.keystore.password", "hunter2"))
    watched.write(model.configure(ConfigResource.BROKER, "", "log.retention.ms", "9"))

    secret, common = watched.look()
    watched.restart()

    assert isinstance(secret, ConfigEffective)
    assert (secret.broker_id, secret.old_value, secret.new_value) == (1, None, None)
    assert isinstance(common, ConfigEffective)
    assert (common.broker_id, common.config_source) == (None, ConfigSource.ALL_BROKERS)
    assert watched.look() == [], "a blank on disk is no change"
    watched.observer.close()
    assert not any(b"hunter2" in path.read_bytes() for path in watched.folder.iterdir())


def test_a_scope_leaves_out_what_is_not_asked_for(tmp_path: Path) -> None:
    """Topics by name; of partitions those that a broker has, or had, a replica of."""
    scope = Scope(takes=lambda topic: topic != "clicks", hosted_by=3)
    watched, model = Watched(tmp_path, scope=scope), Model()
    watched.write(model.create("orders", [(1, 2), (3, 1)]))
    watched.write(model.create("clicks", [(3, 1)]))
    watched.look()
    watched.write(model.reassign("orders", 1, (1, 2)))
    watched.write(model.configure(TOPIC, "clicks", "a", "1"))
    watched.look()

    assert [each.topic for each in watched.told.of(TopicCreated)] == ["orders"]
    assert [each.log.partition for each in watched.told.of(LeaderChanged)] == [1]
    assert [each.broker_id for each in watched.told.of(ReplicaRemoved)] == [3]
    assert watched.told.of(ConfigEffective) == []
