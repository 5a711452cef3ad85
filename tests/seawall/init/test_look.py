"""Looking twice: what lies between, and what is still said where something does not answer."""

from __future__ import annotations

import pytest

from seawall.init.findings import gaps
from seawall.init.rates import rates
from tests.seawall.init.world import REFUSED, Log, Topic, World, world_of
from tiering.cluster.interface import Cause, TopicPartition, Unknown


@pytest.mark.parametrize("observe_s", [0.0, 0.1, 10.0])
def test_the_two_looks_are_as_far_apart_as_was_asked_for(observe_s: float) -> None:
    """A rate is what came between them, so the time between them is the least that was asked for."""
    seen = world_of(orders=Topic()).seen(observe_s=observe_s)

    assert seen.last.at_s - seen.first.at_s >= observe_s


def test_progress_only_ever_goes_on_and_reaches_its_end() -> None:
    """A bar that jumps back, or never fills, is worse than none."""
    world = world_of(orders=Topic())
    world.seen(observe_s=5)

    done = [done for _, done, _ in world.told]
    [total] = {total for _, _, total in world.told}
    assert done == sorted(done)
    assert total - 2 <= done[-1] <= total


def test_a_broker_that_refuses_leaves_the_others_sizes() -> None:
    """One silent broker costs its own sizes, and is named with its reason."""
    world = world_of(orders=Topic(logs=[Log(count=10)]))
    world.brokers[2].log_dirs = REFUSED
    seen = world.seen()

    sizes = {broker for broker, _ in seen.last.size_bytes}
    assert sizes == {1, 3}
    [gap] = gaps(seen, rates(seen, seen.topics))
    assert (gap.what, gap.why, gap.subjects) == (
        "how large the replicas of a broker are",
        "not allowed",
        ("broker 2",),
    )


def test_where_settings_may_not_be_described_the_rest_is_seen() -> None:
    """No right to describe settings: offsets, sizes and rates are there, settings are unknown."""
    world = world_of(orders=Topic(settings=REFUSED, logs=[Log(count=10)]))
    seen = world.seen()

    assert seen.settings["orders"] == REFUSED
    assert seen.leader_bytes(TopicPartition("orders", 0)) == 2000
    found = rates(seen, seen.topics)
    assert found["orders"].records_per_day == 86_400
    assert [(gap.what, gap.subjects) for gap in gaps(seen, found)] == [
        ("what is configured for a topic", ("orders",))
    ]


def test_topics_that_may_not_be_described_show_on_the_disks() -> None:
    """Brokers leave out of Metadata what the principal may not describe; the log dirs give it away."""
    world = world_of(orders=Topic())
    world.hidden = {"payroll": 1_000}
    seen = world.seen()

    [gap] = gaps(seen, rates(seen, seen.topics))
    assert (gap.what, gap.subjects) == ("topics", ("payroll",))


def test_an_empty_cluster_is_seen_as_one() -> None:
    """No topic at all is an answer, and no error."""
    seen = World().seen()

    assert seen.topics == {}
    assert list(gaps(seen, {})) == []


def test_a_partition_without_an_answer_is_missing_and_no_zero() -> None:
    """A log that nobody leads has no rate, and is named."""
    silent = Unknown(cause=Cause.NO_ANSWER, reason="the leader did not answer")
    world = world_of(orders=Topic(logs=[Log(count=5), Log(offsets=silent)]))
    seen = world.seen()

    rate = rates(seen, seen.topics)["orders"]
    assert rate.missing == (TopicPartition("orders", 1),)
    assert len(rate.partitions) == 1
    assert [(gap.what, gap.why) for gap in gaps(seen, {"orders": rate})] == [
        ("how far a log is", "the leader did not answer")
    ]
