"""Estimates: the arithmetic by hand, what is left out and why, and that nothing is counted twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.init.assumed import DAYS_A_MONTH, GIB, MIB, PRICES, WORK, Prices, Work
from seawall.init.estimate import Estimate, TopicCost, estimate, segments_per_day
from seawall.init.rates import Basis, PartitionRate, TopicRate, rates
from tests.seawall.init.world import REFUSED, Log, Topic, World, days, world_of
from tiering.cluster.interface import TopicPartition
from tiering.cluster.settings import Setting, Source, topic_settings

BARE = Work(side_share=0, kept_after_days=0)


def estimated(world: World, *, prices: Prices = PRICES, work: Work = WORK) -> Estimate:
    seen = world.seen()
    return estimate(seen, rates(seen, seen.topics), prices=prices, work=work)


def one(own: dict[str, str], *logs: Log, work: Work = BARE) -> TopicCost:
    [found] = estimated(world_of(orders=Topic(own=own, logs=list(logs))), work=work).topics
    return found


def test_what_is_kept_is_a_days_bytes_for_the_days_that_are_declared() -> None:
    """A record of 1,000 bytes a minute, kept for 30 days, is 43 MB in one copy, whatever the copies are."""
    found = one({"retention.ms": str(30 * 86_400_000)}, days(2, record_bytes=1000))

    assert found.kept_bytes == pytest.approx(1440 * 1000 * 30, rel=0.01)
    assert found.storage_usd == pytest.approx(1440 * 1000 * 30 / GIB * 0.023, rel=0.01)
    assert not found.grows


def test_retention_by_size_limits_it_for_each_partition() -> None:
    """retention.bytes is of one partition: two of them may hold twice as much."""
    found = one({"retention.bytes": "5000000"}, days(2, record_bytes=1000), days(2, record_bytes=1000))

    assert found.kept_bytes == pytest.approx(2 * 5_000_000, rel=0.01)


def test_without_a_limit_it_grows_and_is_told_as_in_a_year() -> None:
    """Nothing ends it: what is there, and a year of days more."""
    found = one({"retention.ms": "-1"}, days(2, record_bytes=1000))

    assert found.grows
    assert found.kept_bytes == pytest.approx(1440 * 1000 * (2 + 365), rel=0.01)


def test_a_quiet_topic_costs_at_least_what_is_there() -> None:
    """Nothing comes today; what is on disk would be copied all the same."""
    log = days(3, record_bytes=1000, is_growing=False)
    found = one({"retention.ms": str(86_400_000 // 24)}, log)

    assert found.kept_bytes == pytest.approx(3 * 1440 * 1000, rel=0.01)


def test_what_was_deleted_is_paid_for_until_it_cannot_be_put_back() -> None:
    """delete_grace_ms and backup_window_days are days of bytes more, and the .aux beside each .log."""
    bare = one({}, days(2, record_bytes=1000))
    kept = one({}, days(2, record_bytes=1000), work=WORK)

    assert kept.kept_bytes == pytest.approx((bare.kept_bytes + bare.bytes_per_day * 8) * 1.005)


def rate(bytes_per_day: float, records_per_day: float) -> TopicRate:
    partition = PartitionRate(
        partition=TopicPartition("orders", 0),
        basis=Basis.DAY,
        records_per_day=records_per_day,
        bytes_per_day=bytes_per_day,
        bytes_now=0,
        oldest_age_ms=None,
    )
    return TopicRate(
        topic="orders",
        basis=Basis.DAY,
        records_per_day=records_per_day,
        bytes_per_day=bytes_per_day,
        bytes_now=0,
        oldest_age_ms=None,
        window_bytes_per_s=None,
        partitions=(partition,),
        missing=(),
    )


@pytest.mark.parametrize(
    ("bytes_per_day", "records_per_day", "segments"),
    [
        (10 * GIB, 1e6, 10),  # by size: a GiB each
        (1 * MIB, 1e6, 1 / 7),  # by time: one a week
        (1.0, 0.01, 0.01),  # one for each record, at most
        (0, 0, 0),
    ],
)
def test_segments_close_by_size_or_by_time_but_not_without_records(
    bytes_per_day: float, records_per_day: float, segments: float
) -> None:
    """segment.bytes is 1 GiB and segment.ms a week; a segment is closed by a record that comes after."""
    entries = {
        name: Setting(value=value, source=Source.DEFAULT)
        for name, value in {
            "cleanup.policy": "delete",
            "remote.storage.enable": "false",
            "retention.ms": "1",
            "retention.bytes": "-1",
            "local.retention.ms": "-2",
            "local.retention.bytes": "-2",
            "segment.ms": str(7 * 86_400_000),
            "segment.bytes": str(GIB),
            "file.delete.delay.ms": "1",
            "min.insync.replicas": "1",
            "max.message.bytes": "1",
            "unclean.leader.election.enable": "false",
        }.items()
    }

    found = segments_per_day(topic_settings("orders", entries), rate(bytes_per_day, records_per_day))

    assert found == pytest.approx(segments)


def test_requests_are_those_of_each_segment() -> None:
    """4 MiB a segment, 360 a day: a .log in one piece, .aux and .json, each read back; and scrubbed."""
    own = {"segment.bytes": str(4 * MIB), "retention.ms": str(10 * 86_400_000)}
    found = one(own, days(2, record_bytes=MIB))

    segments = 360 * DAYS_A_MONTH
    objects = 3 * 360 * 10
    scrubs = DAYS_A_MONTH / 30
    assert found.segments_per_day == pytest.approx(360, rel=0.01)
    assert found.puts_per_month == pytest.approx(segments * 3 + objects / 1000 * scrubs, rel=0.01)
    assert found.gets_per_month == pytest.approx(segments * 3 + objects * scrubs, rel=0.01)


def test_large_segments_go_in_parts_with_two_requests_more() -> None:
    """64 MiB are four parts of 16, a start and a finish."""
    own = {"segment.bytes": str(64 * MIB), "retention.ms": str(86_400_000)}
    found = one(own, days(2, record_bytes=MIB))

    assert found.puts_per_month == pytest.approx(22.5 * DAYS_A_MONTH * (4 + 2 + 2), rel=0.01)


def test_what_cannot_be_tiered_or_is_not_known_has_a_reason_in_place_of_a_sum() -> None:
    """Compacted, Kafka's own tier, unknown settings, a silent partition: each named, none a zero."""
    world = world_of(
        users=Topic(own={"cleanup.policy": "compact"}),
        both=Topic(own={"cleanup.policy": "compact,delete"}),
        far=Topic(own={"remote.storage.enable": "true"}),
        dark=Topic(settings=REFUSED),
        half=Topic(logs=[days(2), Log(offsets=REFUSED)]),
        orders=Topic(logs=[days(2)]),
    )
    found = estimated(world)

    assert [each.topic for each in found.topics] == ["orders"]
    assert {each.topic: each.why for each in found.not_counted} == {
        "users": "it is compacted, and never tiered",
        "both": "it is compacted, and never tiered",
        "far": "Kafka's own tiered storage is on",
        "dark": "its settings are not known: not allowed",
        "half": "1 of its partitions did not answer",
    }


def test_kafkas_own_topics_are_never_tiered() -> None:
    """They are part of the evidence, and not of what S3 would hold."""
    world = world_of(orders=Topic())
    world.topics["__consumer_offsets"] = Topic(own={"cleanup.policy": "compact"})
    found = estimated(world)

    assert [each.topic for each in found.topics] == ["orders"]
    assert found.not_counted == ()


def test_prices_are_what_is_put_in() -> None:
    """Twice the price is twice the sum, of each kind by itself."""
    world = world_of(orders=Topic(logs=[days(2, record_bytes=MIB)]))
    before = estimated(world)
    dearer = replace(PRICES, s3_gb_month=2 * PRICES.s3_gb_month)
    after = estimated(world, prices=dearer)

    assert after.storage_usd == pytest.approx(2 * before.storage_usd)
    assert after.requests_usd == pytest.approx(before.requests_usd)
    assert after.observing.spark_usd == before.observing.spark_usd


def test_evidence_of_a_day_is_counted_source_by_source() -> None:
    """Three replicas that move, four baselines each, three agents' heartbeats a minute, one roll a week."""
    found = estimated(world_of(orders=Topic(logs=[days(2)])))

    heartbeats, baselines, watermarks, rolls = 3 * 1440, 3 * 4, 3 * 144, 3 * 4 / 7
    assert found.observing.events_per_day == pytest.approx(
        heartbeats + baselines + watermarks + rolls, rel=0.01
    )
    tier = (4 + 4 * 3) / 7
    assert found.tiered.events_per_day == pytest.approx(found.observing.events_per_day + tier)


@settings(deadline=None)
@given(sizes=st.lists(st.integers(0, 10**6), min_size=1, max_size=5), kept_days=st.integers(1, 1000))
def test_the_total_is_the_sum_of_the_topics(sizes: list[int], kept_days: int) -> None:
    """No topic is counted twice, and none is less than nothing."""
    world = World()
    for number, size in enumerate(sizes):
        own = {"retention.ms": str(kept_days * 86_400_000)}
        world.topics[f"t{number}"] = Topic(own=own, logs=[days(1.5, every_ms=3_600_000, record_bytes=size)])
    found = estimated(world)

    assert len(found.topics) == len(sizes)
    assert all(each.usd >= 0 and each.kept_bytes >= 0 for each in found.topics)
    assert found.storage_usd == pytest.approx(sum(each.storage_usd for each in found.topics))
    assert found.kept_bytes == pytest.approx(sum(each.kept_bytes for each in found.topics))
