"""Benign days: what brokers do all the time, and looks like loss. No finding, and PASS."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rules.events import (
    DirectoryOffline,
    ReplicaAdded,
    ReplicaAppearance,
    ReplicaRemoval,
    ReplicaRemoved,
    SegmentRemoval,
    Source,
    TrimCertified,
    Truncated,
)
from rules.machine.verdict import Verdict
from tests.rules.machine.histories import (
    HOUR_MS,
    MIB,
    T0_MS,
    History,
    fixture,
    newest,
    segment,
)


def _removed(h: History, broker: int, how: ReplicaRemoval) -> None:
    h.replica(ReplicaRemoved, broker, replica_removal=how, metadata_offset=None)


def reassignment_there_and_back() -> History:
    """Measured: the re-added broker reads 0, 9000, 8784 (a batch boundary), 9000 (AUDIT_FACTS 4)."""
    h = fixture("ours")
    _removed(h, 3, ReplicaRemoval.RENAMED_DELETE)
    h.syncs(1, 2)
    h.after(minutes=10)
    h.say(
        ReplicaAdded,
        component="metadata",
        source=Source.KRAFT,
        metadata_offset=h.kraft_offset,
        is_coalesced=False,
        not_before_ms=None,
        broker_id=3,
        replicas=(1, 2, 3),
    )
    h.started(3, start=0, local=0, watermark=0)
    h.after(seconds=1).start(3, 0, 9000, local=9000, watermark=9000)
    h.after(seconds=1).start(3, 9000, 8784, local=8784, watermark=9000)
    h.after(seconds=15).start(3, 8784, 9000, local=8784)
    h.after(minutes=5).syncs(1, 2, 3)
    return h


def disk_replaced() -> History:
    """The same broker with an empty disk: another life, which begins at the leader's start."""
    h = fixture("none")
    _removed(h, 2, ReplicaRemoval.GONE)
    h.syncs(1, 3)
    h.after(minutes=3).started(2, start=0, local=0, watermark=0)
    h.after(minutes=9).watermark(2, 10_500, size_bytes=11_010_048)
    h.syncs(1, 2, 3)
    return h


def rolling_restart() -> History:
    """Each broker in turn; leaders move, and a new leader's checkpointed watermark trails for seconds."""
    h = fixture("none")
    for broker, leader in ((1, 2), (2, 3), (3, 1)):
        rest = tuple(each for each in (1, 2, 3) if each != broker)
        h.syncs(*rest)
        h.elects(leader, rest)
        h.after(seconds=3).watermark(leader, 10_300, size_bytes=11_010_048)
        h.after(seconds=5).watermark(leader, 10_500, size_bytes=11_010_048)
        h.after(seconds=40).restarted(broker, clean=True)
        h.after(seconds=20).syncs(1, 2, 3)
        h.after(minutes=5)
    return h


def unclean_restart_forgets_the_last_start() -> History:
    """The start moved half a minute before the crash, and was not in the checkpoint yet."""
    h = fixture(
        "kip405",
        declared={"total_retention_ms": '"10h"', "local_retention_ms": '"1h"'},
        retention_ms=10 * HOUR_MS,
    )
    h.after(minutes=3)
    for broker in (1, 2, 3):
        h.start(broker, 0, 1000)
    h.after(seconds=30).restarted(2, clean=False)
    h.start(2, 1000, 0)
    h.after(seconds=20).start(2, 0, 1000)
    h.expunged(*segment(0)[:3])
    return h


def preferred_election() -> History:
    h = fixture("none")
    h.elects(2)
    h.after(minutes=2).elects(1)
    return h


def each_replica_expires_by_itself() -> History:
    """Three retention checks minutes apart; followers ahead of the leader, then the leader too."""
    keeps = {"total_retention_ms": '"10h"'}
    h = fixture("none", declared=keeps, retention_ms=10 * HOUR_MS)
    h.after(minutes=2)
    for broker in (2, 3, 1):
        h.after(minutes=1.5).dropped(broker, 0, 1000, newest(0))
        h.start(broker, 0, 1000, local=1000)
    return h


def streams_purges() -> History:
    """A standing permission: DeleteRecords all day, in the middle of segments, files going later."""
    h = fixture(
        "none", declared={"total_retention_ms": '"unlimited"', "record_deletion": '"free"'}, retention_ms=-1
    )
    for at in range(500, 3500, 500):
        h.after(seconds=30)
        for broker in (1, 2, 3):
            h.start(broker, at - 500, at, local=(at - 1) // 1000 * 1000)
            if at % 1000 == 0:
                _, base, end, newest_ms = segment(at // 1000 - 1)
                h.dropped(broker, base, end, newest_ms)
    return h


def log_dir_unmounted() -> History:
    """Thousands of files out of sight are evidence that is missing; mounted again, it is all there."""
    h = fixture("none")
    h.say(
        DirectoryOffline,
        2,
        broker_id=2,
        directory_id="d2",
        path="/data",
        problem="not_readable",
        detail="it is not mounted",
        not_before_ms=h.now_ms - 10_000,
    )
    h.syncs(1, 3)
    h.after(minutes=30).baseline(2, start=0, local=0, watermark=10_500, size_bytes=11_010_048)
    h.syncs(1, 2, 3)
    return h


def follower_down_past_retention() -> History:
    """It comes back, is truncated fully, and begins at the leader's start."""
    keeps = {"total_retention_ms": '"10h"'}
    h = fixture("none", declared=keeps, retention_ms=10 * HOUR_MS)
    h.syncs(1, 2)
    h.after(minutes=3)
    for broker in (1, 2):
        h.dropped(broker, 0, 1000, newest(0))
        h.start(broker, 0, 1000, local=1000)
    h.after(minutes=20).started(
        3, start=1000, local=1000, watermark=1000, how=ReplicaAppearance.TRUNCATED_FULLY
    )
    h.after(minutes=5).watermark(3, 10_500, start=1000, size_bytes=9_961_472)
    h.syncs(1, 2, 3)
    return h


def records_deleted_as_authorised() -> History:
    """One act, two events half a minute apart, at another time on each broker (KAFKA_FACTS, measured)."""
    from rules.events import Operation

    h = fixture("none")
    h.allows(Operation.DELETE_RECORDS, start=0, end=5500)
    h.after(minutes=1)
    for broker in (1, 2, 3):
        h.after(seconds=5)
        for index in range(5):
            _, base, end, newest_ms = segment(index)
            h.dropped(broker, base, end, newest_ms)
        h.start(broker, 0, 5000, local=5000)
    for broker in (1, 2, 3):
        h.after(seconds=15).start(broker, 5000, 5500, local=5000)
    return h


def trimmed_by_us() -> History:
    """The tier holds it, a certificate says so, and DeleteRecords moves every replica's start."""
    h = fixture("ours", local_from=8000)
    h.say(
        TrimCertified,
        certificate_id="t1",
        old_start=8000,
        new_start=9000,
        frontier=10_000,
        metadata_partition=0,
        metadata_offset=h.tier_offset,
        digest="0" * 64,
        agreeing_brokers=(1, 2, 3),
        segments=(("s8", "x"),),
    )
    for broker in (1, 2, 3):
        h.after(seconds=5).start(broker, 9000, 9000, local=8000)
        h.dropped(broker, 8000, 9000, newest(8))
    return h


def overlap_at_a_leader_change() -> History:
    """Two leaders roll at other offsets: their copies overlap, in two epochs."""
    h = fixture("ours")
    h.elects(2)
    h.copied("t9", 9500, 10_400, newest(9))
    return h


def compaction_swaps_segments() -> History:
    h = fixture("none", retention_ms=-1, declared={"total_retention_ms": '"unlimited"'})
    h.config("cleanup.policy", "compact", first=True)
    h.after(minutes=5)
    for broker in (1, 2, 3):
        for index in (3, 4):
            _, base, end, newest_ms = segment(index)
            h.dropped(broker, base, end, newest_ms, how=SegmentRemoval.SWAPPED)
        h.closed(broker, 3000, 5000, newest(4), data_end=4990, record_count=100)
    return h


def tail_truncated_by_a_returning_replica() -> History:
    """What it cuts off was never committed: its own watermark lies below."""
    h = fixture("none")
    h.syncs(1, 2)
    h.watermark(1, 12_000, size_bytes=12 * MIB)
    h.after(minutes=10).replica(Truncated, 3, old_end=10_800, new_end=10_500)
    h.after(minutes=1).watermark(3, 12_000, size_bytes=12 * MIB)
    h.syncs(1, 2, 3)
    return h


def a_copy_fails_and_is_cleaned_up() -> History:
    from rules.events import DeleteStarted

    h = fixture("kip405")
    h.copy_started("x", 10_000, 10_400, newest(9))
    h.after(minutes=1).tier(DeleteStarted, "x", 10_000, 10_400, cause=None)
    return h


def local_retention_after_the_upload() -> History:
    h = fixture("ours")
    h.after(minutes=2)
    for broker in (1, 2, 3):
        h.after(minutes=1).dropped(broker, 9000, 10_000, newest(9))
        h.start(broker, 9000, 10_000, local=10_000)
    return h


def size_retention_counts_each_offset_once() -> History:
    """10.5 MiB under a limit of 9.5 MiB: the first segment goes, rightly."""
    keeps = {"total_retention_bytes": '"9728KiB"', "total_retention_ms": '"7d"'}
    h = fixture("none", declared=keeps, retention_bytes=9728 * 1024)
    h.after(minutes=5)
    for broker in (1, 2, 3):
        h.dropped(broker, 0, 1000, newest(0))
        h.start(broker, 0, 1000, local=1000)
        h.watermark(broker, 10_500, start=1000, size_bytes=9_961_472)
    return h


def retention_grows() -> History:
    """Growth is free: what keeps more loses nothing (AUDIT_FACTS 18)."""
    h = fixture("none")
    h.config("retention.ms", "-1", str(7 * 24 * HOUR_MS))
    return h


def declared_after_the_change() -> History:
    """The declaration lands twenty minutes behind the change, inside its grace; nothing went yet."""
    h = fixture("none")
    h.config("retention.ms", str(6 * 24 * HOUR_MS), str(7 * 24 * HOUR_MS))
    h.after(minutes=20).declares("CHG-2", total_retention_ms='"6d"')
    return h


def topic_made_just_before_the_run() -> History:
    h = History(mode="none", now_ms=T0_MS)
    h.config("retention.ms", str(HOUR_MS), first=True)
    h.config("retention.bytes", "-1", first=True)
    h.leadership()
    for broker in (1, 2, 3):
        h.started(broker, start=0, local=0, watermark=0)
        h.baseline(broker, start=0, local=0, watermark=0, size_bytes=0, periodic=False)
    return h


def clocks_that_differ() -> History:
    """Broker 1's clock is four seconds behind: what has expired there has not yet, by the others' clocks."""
    h = fixture("none", declared={"total_retention_ms": '"10h"'}, retention_ms=10 * HOUR_MS)
    h.now_ms = newest(0) + 10 * HOUR_MS - 4_000
    for broker in (1, 2, 3):
        h.dropped(broker, 0, 1000, newest(0))
        h.start(broker, 0, 1000, local=1000)
    return h


DAYS: tuple[Callable[[], History], ...] = (
    reassignment_there_and_back,
    disk_replaced,
    rolling_restart,
    unclean_restart_forgets_the_last_start,
    preferred_election,
    each_replica_expires_by_itself,
    streams_purges,
    log_dir_unmounted,
    follower_down_past_retention,
    records_deleted_as_authorised,
    trimmed_by_us,
    overlap_at_a_leader_change,
    compaction_swaps_segments,
    tail_truncated_by_a_returning_replica,
    a_copy_fails_and_is_cleaned_up,
    local_retention_after_the_upload,
    size_retention_counts_each_offset_once,
    retention_grows,
    declared_after_the_change,
    topic_made_just_before_the_run,
    clocks_that_differ,
)


@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.__name__)
def test_a_benign_day_is_silent(day: Callable[[], History]) -> None:
    """No finding is opened, withdrawn ones included, and once every grace is over the log passes."""
    h = day()
    judged = h.after(minutes=30).judged()

    assert [(each.rule_id, each.ranges, each.note) for each in judged.findings] == []
    assert judged.verdict is Verdict.PASS, judged.statement
    assert h.now_ms > T0_MS
