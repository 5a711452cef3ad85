"""Rates: by the last day, by age, by what came between two looks; and never out of nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.init.rates import Basis, TopicRate, rates
from tests.seawall.init.world import REFUSED, Log, Topic, days, world_of

PER_DAY = 1440  # of a record a minute


def rate_of(*logs: Log, own: dict[str, str] | None = None, observe_s: float = 10.0) -> TopicRate:
    world = world_of(orders=Topic(logs=list(logs), own=own or {}))
    seen = world.seen(observe_s=observe_s)
    return rates(seen, seen.topics)["orders"]


def test_a_log_older_than_a_day_goes_by_its_last_day() -> None:
    """What the last day brought is the rate, however much more there is; bytes by what a record takes."""
    rate = rate_of(days(3, record_bytes=50))

    assert rate.basis is Basis.DAY
    assert rate.records_per_day == pytest.approx(PER_DAY, abs=2)
    assert rate.bytes_per_day == pytest.approx(PER_DAY * 50, rel=0.01)
    assert rate.oldest_age_ms == pytest.approx(3 * 86_400_000, abs=120_000)


def test_a_younger_log_goes_by_its_age() -> None:
    """Six hours of a record a minute are a day of a record a minute."""
    rate = rate_of(days(0.25))

    assert rate.basis is Basis.AGE
    assert rate.records_per_day == pytest.approx(PER_DAY, rel=0.02)


def test_a_log_of_minutes_goes_by_what_came_while_it_was_watched() -> None:
    """A new log's age says more about its beginning than about its days."""
    rate = rate_of(Log(count=10, every_ms=1000), observe_s=20)

    assert rate.basis is Basis.WINDOW
    assert rate.records_per_day == pytest.approx(86_400, rel=0.1)
    assert rate.window_bytes_per_s == pytest.approx(100, rel=0.1)


def test_nothing_in_it_and_nothing_coming_is_empty() -> None:
    """An empty log has a rate, and it is zero."""
    rate = rate_of(Log(is_growing=False))

    assert (rate.basis, rate.records_per_day, rate.bytes_per_day, rate.bytes_now) == (Basis.EMPTY, 0, 0, 0)


def test_a_log_that_is_quiet_since_days_has_a_rate_of_zero() -> None:
    """Old records, none in the last day: nothing comes in, which is not the same as not known."""
    log = Log(count=100, every_ms=86_400_000, is_growing=False)
    log.first_since = lambda at_ms: None if at_ms else Log.first_since(log, 0)  # type: ignore[method-assign]
    rate = rate_of(log)

    assert (rate.basis, rate.records_per_day, rate.bytes_per_day) == (Basis.DAY, 0, 0)


def test_a_topic_is_as_well_known_as_its_worst_partition() -> None:
    """One partition of yesterday and one of a minute ago: the sum rests on the worse of the two."""
    rate = rate_of(days(2), Log(count=10))

    assert rate.basis is Basis.WINDOW


def test_remote_storage_is_not_read_for_an_age() -> None:
    """Kafka would fetch remote indexes for it: such a log goes by its growth on disk, without an age."""
    rate = rate_of(days(3, every_ms=1000, record_bytes=70), own={"remote.storage.enable": "true"})

    assert (rate.basis, rate.oldest_age_ms) == (Basis.WINDOW, None)
    assert rate.bytes_per_day == pytest.approx(86_400 * 70, rel=0.01)


def test_without_sizes_there_are_records_and_no_bytes() -> None:
    """Where log dirs may not be described, the number of bytes is not known, rather than none."""
    world = world_of(orders=Topic(logs=[days(2)]))
    for broker in world.brokers.values():
        broker.log_dirs = REFUSED
    seen = world.seen()

    rate = rates(seen, seen.topics)["orders"]
    assert rate.records_per_day == pytest.approx(PER_DAY, abs=2)
    assert (rate.bytes_per_day, rate.bytes_now) == (None, None)


@settings(deadline=None)
@given(age_days=st.floats(0.05, 4), every_ms=st.sampled_from([60_000, 300_000]), size=st.integers(1, 10_000))
def test_an_even_log_has_the_same_rate_however_it_is_known(age_days: float, every_ms: int, size: int) -> None:
    """By its age or by its last day, a log to which a record comes each so often has that rate."""
    rate = rate_of(days(age_days, every_ms=every_ms, record_bytes=size))

    wanted = 86_400_000 / every_ms
    slack = 0.02 + 2 * every_ms / (age_days * 86_400_000)  # a record more or less, at either end
    assert rate.records_per_day == pytest.approx(wanted, rel=slack)
    assert rate.bytes_per_day == pytest.approx(wanted * size, rel=slack + 0.02)
