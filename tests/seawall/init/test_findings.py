"""What is a danger is said, each by its own cause, and a sound cluster has none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from seawall.init.findings import WHY, Kind, dangers, gaps
from seawall.init.rates import rates
from seawall.init.versions import release_of
from tests.seawall.init.world import BROKER_ENTRIES, REFUSED, Log, Topic, World, days, world_of
from tiering.cluster.log_sizes import Features, Quorum

HOUR_MS = 3_600_000


def kinds(world: World) -> dict[Kind, dict[str, str]]:
    seen = world.seen()
    return {each.kind: dict(each.subjects) for each in dangers(seen, rates(seen, seen.topics))}


def sound() -> World:
    return world_of(orders=Topic(logs=[days(2)]), users=Topic(own={"cleanup.policy": "compact"}))


def test_a_sound_cluster_has_no_danger() -> None:
    """Three copies, two of them needed, kept for a week: nothing to say."""
    assert kinds(sound()) == {}


def _one_copy(world: World) -> None:
    world.topics["orders"].replicas = (1,)


def _no_leader(world: World) -> None:
    world.topics["orders"].leader_id = None


def _behind(world: World) -> None:
    world.topics["orders"].isr = (1, 2)


def _unclean(world: World) -> None:
    world.topics["orders"].own["unclean.leader.election.enable"] = "true"


def _one_acknowledges(world: World) -> None:
    world.topics["orders"].own["min.insync.replicas"] = "1"


def _short(world: World) -> None:
    world.topics["orders"].own["retention.ms"] = str(HOUR_MS)


def _small(world: World) -> None:
    world.topics["orders"].own["retention.bytes"] = "1000"


def _differ(world: World) -> None:
    world.brokers[3].entries["log.retention.hours"] = "24"


def _careless(world: World) -> None:
    world.brokers[2].entries |= {"auto.create.topics.enable": "true", "default.replication.factor": "1"}


def _offline(world: World) -> None:
    world.brokers[1].trouble = "it is offline"


def _full(world: World) -> None:
    world.brokers[1].usable_bytes = 10**10


def _one_controller(world: World) -> None:
    world.quorum = Quorum(leader_id=101, voter_ids=frozenset({101}))


def _old(world: World) -> None:
    world.brokers[1].features = Features(newest_metadata_version=20, metadata_version=20)


def _no_kraft(world: World) -> None:
    world.brokers[1].features = Features(newest_metadata_version=None, metadata_version=None)


@pytest.mark.parametrize(
    ("spoil", "kind", "subject"),
    [
        (_one_copy, Kind.ONE_COPY, "orders"),
        (_no_leader, Kind.NO_LEADER, "orders"),
        (_behind, Kind.UNDER_REPLICATED, "orders"),
        (_unclean, Kind.UNCLEAN_ELECTION, "orders"),
        (_one_acknowledges, Kind.ACKNOWLEDGED_BY_ONE, "orders"),
        (_short, Kind.SHORT_RETENTION, "orders"),
        (_small, Kind.SHORT_BY_SIZE, "orders"),
        (_differ, Kind.BROKERS_DIFFER, "orders"),
        (_careless, Kind.CARELESS_CREATION, "broker 2"),
        (_offline, Kind.DISK_OFFLINE, "broker 1: /var/lib/kafka"),
        (_full, Kind.DISK_NEARLY_FULL, "broker 1: /var/lib/kafka"),
        (_one_controller, Kind.ONE_CONTROLLER, "101"),
        (_old, Kind.OLD_KAFKA, "broker 1"),
        (_no_kraft, Kind.NOT_KRAFT, "broker 1"),
    ],
)
def test_each_cause_gives_its_own_danger_and_no_other(
    spoil: Callable[[World], None], kind: Kind, subject: str
) -> None:
    """One thing wrong, one danger, which names what it is about."""
    world = sound()
    spoil(world)

    found = kinds(world)
    assert list(found) == [kind]
    assert list(found[kind]) == [subject]


def test_one_broker_is_a_danger_beside_its_topics() -> None:
    """With one broker no topic has a second copy, and that is said of the cluster, too."""
    world = world_of(orders=Topic(replicas=(1,)))
    world.brokers = {1: world.brokers[1]}

    assert list(kinds(world)) == [Kind.ONE_COPY, Kind.ONE_BROKER]


def test_what_is_compacted_has_no_retention_that_could_be_short() -> None:
    """retention.ms says nothing about a topic that is only compacted."""
    world = world_of(users=Topic(own={"cleanup.policy": "compact", "retention.ms": "1000"}))

    assert kinds(world) == {}


def test_kafkas_own_topics_are_looked_at_for_copies_but_not_for_retention() -> None:
    """__consumer_offsets on one disk is a danger; how long it is kept is Kafka's affair."""
    world = world_of(
        __consumer_offsets=Topic(replicas=(1,), own={"cleanup.policy": "delete", "retention.ms": "1000"})
    )
    world.topics = {"__consumer_offsets": next(iter(world.topics.values()))}

    assert kinds(world) == {Kind.ONE_COPY: {"__consumer_offsets": ""}}


def test_what_is_not_told_is_neither_sound_nor_a_danger() -> None:
    """Nothing may be described: no danger is made up, and each thing is said to be unknown."""
    world = world_of(orders=Topic(settings=REFUSED, logs=[Log(offsets=REFUSED)]))
    world.quorum = REFUSED
    for broker in world.brokers.values():
        broker.settings = broker.log_dirs = broker.features = REFUSED
    seen = world.seen()

    found = rates(seen, seen.topics)
    assert list(dangers(seen, found)) == []
    assert {each.what for each in gaps(seen, found)} == {
        "what is configured for a topic",
        "what is configured for a broker",
        "how large the replicas of a broker are",
        "who keeps the metadata",
        "how far a log is",
    }


def test_each_kind_says_why_it_is_one() -> None:
    """No danger without its reason."""
    assert set(WHY) == set(Kind)


@pytest.mark.parametrize(
    ("level", "release"),
    [
        (0, None),
        (1, "3.0"),
        (7, "3.3"),
        (19, "3.7"),
        (21, "3.9"),
        (25, "4.0"),
        (30, "4.3"),
        (99, "4.4 or newer"),
    ],
)
def test_a_level_of_metadata_version_tells_the_release(level: int, release: str | None) -> None:
    """The first and the last level of a release are its own; what is newer than the table says so."""
    found = release_of(level)

    assert (str(found) if found else None) == release


def test_the_worlds_brokers_keep_for_a_week() -> None:
    """The tests above stand on that: a broker's default is the topics'."""
    assert BROKER_ENTRIES["log.retention.hours"] == "168"
