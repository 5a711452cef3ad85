"""Rules that no fault of RULES.md shows: each violated once, and once almost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rules.events import (
    CopyFinished,
    CopyStarted,
    DeleteStarted,
    EpochStarted,
    Inventory,
    LogEvent,
    LossAccepted,
    Operation,
    RecordsDeleteRequested,
    RestoreTarget,
    ScrubDepth,
    ScrubOutcome,
    Source,
    Truncated,
)
from rules.machine import Suppression, Terms, fold, newborn
from rules.machine.emitters import listen
from rules.machine.fleet import blasts, merged
from rules.machine.gate import Keep, MayDelete, would_be
from rules.machine.verdict import Status, Verdict, judge, judgement_hash
from tests.rules.machine import acts
from tests.rules.machine.faults import retention_shrunk, trimmed_prefix
from tests.rules.machine.histories import (
    DAY_MS,
    HOUR_MS,
    LOG,
    MIB,
    MINUTE_MS,
    T0_MS,
    TERMS,
    TOPIC,
    History,
    fixture,
    found,
    newest,
    segment,
)

TEN_HOURS = {"total_retention_ms": '"10h"', "local_retention_ms": '"1h"', "tiering": "true"}


def _scrub(
    h: History,
    index: int,
    outcome: ScrubOutcome,
    problem: str | None = None,
    *,
    key: str = "k",
    depth: ScrubDepth = ScrubDepth.DEEP,
) -> None:
    acts.scrubs(h, segment(index)[:3], key, outcome=outcome, problem=problem, depth=depth)


def _lists(h: History, **own: tuple[str, ...]) -> None:
    fields: dict[str, Any] = {"missing_keys": (), "deleted_keys": (), "unknown_keys": (), **own}
    h.say(
        Inventory,
        component="scrub",
        object_count=10,
        size_bytes=10 * MIB,
        listing_digest="0" * 64,
        differences_left_out=0,
        metadata_offset=h.tier_offset,
        **fields,
    )


def _epoch(h: History, broker: int, epoch: int, start: int) -> None:
    h.replica(EpochStarted, broker, epoch=epoch, start_offset=start)


def illegal_transition() -> History:
    h = fixture("kip405")
    h.expunged("s0", 0, 1000)
    segment_id, base, end, newest_ms = segment(0)
    h.tier(
        CopyFinished,
        segment_id,
        base,
        end,
        data_end=end,
        record_count=1000,
        size_bytes=MIB,
        max_timestamp_ms=newest_ms,
        objects=(),
    )
    return h


def unknown_delete() -> History:
    h = fixture("kip405")
    h.expunged("nobody's", 2000, 3000)
    return h


def impossible_record() -> History:
    h = fixture("ours")
    h.tier(
        CopyFinished,
        "odd",
        10_000,
        10_400,
        data_end=10_400,
        record_count=900,
        size_bytes=1,
        max_timestamp_ms=newest(9),
        objects=(),
    )
    return h


def missing_once_then_there() -> History:
    h = fixture("ours")
    _lists(h, missing_keys=("p/00000000000000002000-s2.log",))
    h.after(minutes=20)
    _lists(h)
    return h


def missing_twice() -> History:
    h = fixture("ours")
    for _ in range(2):
        _scrub(h, 2, ScrubOutcome.FAILED, "missing")
        h.after(minutes=20)
    return h


def store_answers_with_errors() -> History:
    h = fixture("ours")
    for _ in range(3):
        _scrub(h, 2, ScrubOutcome.INCONCLUSIVE, "store_error")
        h.after(minutes=20)
    return h


def unknown_object() -> History:
    h = fixture("ours")
    for _ in range(2):
        _lists(h, unknown_keys=("p/00000000000000002000-stranger.log",))
        h.after(minutes=20)
    return h


def corrupt_object() -> History:
    h = fixture("ours")
    _scrub(h, 3, ScrubOutcome.FAILED, "crc")
    return h


def deleted_and_its_siblings_there() -> History:
    h = fixture("ours")
    for _ in range(2):
        _scrub(h, 2, ScrubOutcome.FAILED, "deleted", key="p/00000000000000002000-s2.log")
        _scrub(h, 2, ScrubOutcome.VERIFIED, key="p/00000000000000002000-s2.aux")
        h.after(minutes=20)
    return h


def corrupt_and_its_siblings_sound() -> History:
    h = corrupt_object()
    _scrub(h, 3, ScrubOutcome.VERIFIED, key="another")
    return h


def corrupt_and_listed_since() -> History:
    h = corrupt_object()
    _scrub(h, 3, ScrubOutcome.VERIFIED, depth=ScrubDepth.LISTED)
    return h


def corrupt_and_repaired() -> History:
    h = corrupt_object()
    h.after(minutes=5)
    _scrub(h, 3, ScrubOutcome.VERIFIED)
    return h


def uploaded_above_the_watermark() -> History:
    h = fixture("ours")
    h.copied("early", 10_000, 11_000, newest(9))
    h.after(minutes=5).watermark(1, 10_500, start=9000, size_bytes=2 * MIB)
    return h


def uploaded_just_before_the_checkpoint() -> History:
    h = fixture("ours")
    h.copied("early", 10_000, 11_000, newest(9))
    h.after(seconds=5).watermark(1, 11_200, start=9000, size_bytes=2 * MIB)
    return h


def retention_passed_what_was_published() -> History:
    """More came and went within ten minutes than the last watermark that was told."""
    h = fixture("ours")
    h.copied("early", 10_000, 11_000, newest(9))
    h.after(minutes=5).start(1, 9000, 11_000, local=11_000, watermark=11_200)
    h.watermark(1, 11_200, start=11_000, size_bytes=2 * MIB)
    return h


def unclean_election() -> History:
    h = fixture("none")
    h.elects(2, (2,), unclean=True)
    _epoch(h, 2, h.epoch, 10_200)
    h.watermark(2, 10_200, size_bytes=11 * MIB)
    h.after(minutes=2).watermark(2, 10_300, size_bytes=11 * MIB)
    h.replica(Truncated, 1, old_end=10_500, new_end=10_200)
    return h


def leader_that_died_before_it_replicated() -> History:
    """KAFKA_FACTS 19: epoch 6 begins at 10600 and epoch 7 at 10500; nothing was lost."""
    h = fixture("none")
    h.elects(2)
    _epoch(h, 2, h.epoch, 10_600)
    h.elects(3, (1, 3))
    _epoch(h, 3, h.epoch, 10_500)
    h.after(minutes=1).watermark(3, 10_700, size_bytes=12 * MIB)
    h.replica(Truncated, 2, old_end=10_650, new_end=10_500)
    h.syncs(1, 2, 3)
    return h


def two_leaders() -> History:
    h = fixture("none")
    h.elects(2)
    h.leader = 3
    h.leadership()
    return h


def fabricated_watermark() -> History:
    h = fixture("none")
    h.watermark(3, 10_500, start=0, size_bytes=11_010_048)
    h.after(minutes=1).restarted(3, clean=True)
    h.after(seconds=1).watermark(3, 99_999, start=99_999, size_bytes=0)
    return h


def fabricated_watermark_heard_first() -> History:
    h = fixture("none")
    h.watermark(3, 10_500, start=0, size_bytes=11_010_048)
    h.after(minutes=1).watermark(3, 99_999, start=99_999, size_bytes=0)
    h.restarted(3, clean=None)
    return h


def far_future() -> History:
    h = fixture("none")
    h.after(minutes=1).closed(1, 10_000, 10_400, T0_MS * 1000)
    return h


def expired_and_kept() -> History:
    h = fixture("none", declared={"total_retention_ms": '"10h"'}, retention_ms=10 * HOUR_MS)
    return h.after(minutes=30)


def asked_without_permission() -> History:
    h = fixture("none")
    h.say(RecordsDeleteRequested, component="cli", principal="bob", change_id="CHG-9", new_start=2000)
    h.after(seconds=10)
    for broker in (1, 2, 3):
        h.start(broker, 0, 2000, local=2000)
    return h


def topic_may_not_be_allowed_by_him() -> History:
    h = fixture("none", declared={"total_retention_ms": '"7d"', "authorisers": '["alice"]'})
    h.allows(Operation.DELETE_RECORDS, start=0, end=2000, principal="mallory")
    for broker in (1, 2, 3):
        h.start(broker, 0, 2000, local=2000)
    return h


def deleted_under_a_hold() -> History:
    h = fixture(
        "ours", declared={"total_retention_ms": '"10h"', "local_retention_ms": '"1h"', "tiering": "true"}
    )
    acts.holds(h)
    h.after(minutes=2).expunged("s0", 0, 1000)
    return h


def half_made_copy_cleaned_up_under_a_hold() -> History:
    h = fixture("ours")
    h.copy_started("slow", 10_000, 10_400, newest(9))
    acts.holds(h)
    h.after(minutes=2).expunged("slow", 10_000, 10_400)
    return h


def deleted_again_long_after() -> History:
    """Of a deleted copy the name is kept, and that is enough."""
    h = fixture("ours", declared=TEN_HOURS)
    h.after(minutes=2).expunged("s0", 0, 1000)
    h.after(hours=3).expunged("s0", 0, 1000)
    return h


def far_future_beside_another_copy() -> History:
    """Of the same offsets another copy has a sane time: the first lies there all the same."""
    h = fixture("ours")
    h.copied("far", 2000, 3000, T0_MS * 1000)
    h.copied("sane", 2000, 3000, newest(2))
    return h


def counted_twice_before_anybody_told_who_leads() -> History:
    """Fault 10 as a broker that stands alone does it: it leads again, and deletes, before that is heard."""
    keeps = {"total_retention_ms": '"7d"', "total_retention_bytes": '"15MiB"', "local_retention_ms": '"1h"'}
    h = fixture("kip405", local_from=0, declared=keeps)
    h.config("retention.bytes", str(15 * MIB), "-1")
    h.after(minutes=5)
    h.leader = -1
    h.leadership()
    segment_id, base, end, _ = segment(0)
    h.tier(DeleteStarted, segment_id, base, end, cause=None, broker_id=1, broker=1)
    h.after(seconds=3).elects(1)
    for broker in (1, 2, 3):
        h.start(broker, 0, 1000, local=0)
    return h


def restored_long_after_it_was_copied() -> History:
    """Between the two records of its next generation it is no copy that has hung since its first."""
    h = fixture("ours")
    segment_id, base, end, newest_ms = segment(2)
    fields = {"data_end": end, "record_count": 1000, "size_bytes": MIB, "max_timestamp_ms": newest_ms}
    h.after(minutes=5).tier(CopyStarted, segment_id, base, end, generation=1, **fields)
    h.tier(CopyFinished, segment_id, base, end, generation=1, objects=(), **fields)
    return h


def deleted_after_its_release() -> History:
    h = fixture(
        "ours", declared={"total_retention_ms": '"10h"', "local_retention_ms": '"1h"', "tiering": "true"}
    )
    acts.holds(h)
    acts.releases(h)
    h.after(minutes=2).expunged("s0", 0, 1000)
    return h


def records_missing_inside() -> History:
    h = fixture("none")
    h.after(minutes=1).closed(1, 10_000, 10_400, newest(9), data_end=10_300)
    return h


def brokers_differ() -> History:
    from rules.events import ConfigEffective, ConfigResource, ConfigSource

    h = History(mode="none", now_ms=T0_MS - HOUR_MS)
    h.leadership()
    for broker, hours in ((1, "168"), (2, "168"), (3, "24")):
        h.say(
            ConfigEffective,
            broker,
            resource=ConfigResource.BROKER,
            topic_id=None,
            topic=None,
            broker_id=broker,
            key="log.retention.hours",
            old_value=None,
            new_value=hours,
            config_source=ConfigSource.STATIC,
            is_first_sight=True,
            source=Source.ADMIN,
            metadata_offset=None,
            is_coalesced=False,
            not_before_ms=None,
        )
    for broker in (1, 2, 3):
        h.baseline(broker, start=0, local=0, watermark=10_500, size_bytes=MIB)
    return h


CASES: tuple[tuple[Callable[[], History], set[str]], ...] = (
    (illegal_transition, {"SEG-01", "DEL-01", "START-06"}),
    (unknown_delete, {"SEG-05"}),
    (impossible_record, {"SEG-04"}),
    (missing_once_then_there, set()),
    (missing_twice, {"SEG-06"}),
    (deleted_and_its_siblings_there, {"SEG-06"}),
    (store_answers_with_errors, set()),
    (unknown_object, {"SEG-07"}),
    (corrupt_object, {"SEG-08"}),
    (corrupt_and_its_siblings_sound, {"SEG-08"}),
    (corrupt_and_listed_since, {"SEG-08"}),
    (corrupt_and_repaired, {"SEG-08"}),
    (uploaded_above_the_watermark, {"SEG-10"}),
    (uploaded_just_before_the_checkpoint, set()),
    (retention_passed_what_was_published, set()),
    (unclean_election, {"HWM-01", "HWM-02", "EPO-01"}),
    (leader_that_died_before_it_replicated, set()),
    (two_leaders, {"EPO-01"}),
    (fabricated_watermark, {"HWM-03"}),
    (fabricated_watermark_heard_first, {"HWM-03"}),
    (far_future, {"RET-06"}),
    (expired_and_kept, {"RET-05"}),
    (asked_without_permission, {"OPS-01", "START-02"}),
    (topic_may_not_be_allowed_by_him, {"START-02"}),
    (deleted_under_a_hold, {"HLD-01"}),
    (deleted_after_its_release, set()),
    (half_made_copy_cleaned_up_under_a_hold, set()),
    (restored_long_after_it_was_copied, set()),
    (deleted_again_long_after, {"SEG-01"}),
    (counted_twice_before_anybody_told_who_leads, {"START-02", "RET-02"}),
    (far_future_beside_another_copy, {"RET-06", "SEG-03"}),
    (records_missing_inside, {"SEG-02"}),
    (brokers_differ, {"RET-03"}),
)


@pytest.mark.parametrize(("make", "rule_ids"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_a_rule_and_its_edge(make: Callable[[], History], rule_ids: set[str]) -> None:
    """Exactly these rules fire."""
    judged = make().after(minutes=15).judged()

    assert {each.rule_id for each in judged.findings} == rule_ids, judged.findings


def test_what_is_repaired_is_resolved_and_what_happened_is_not() -> None:
    """A later scrub that verifies resolves SEG-08; a committed suffix that was lost stays open."""
    repaired = corrupt_and_repaired().after(minutes=15).judged()
    lost = unclean_election().after(minutes=15).judged()

    assert [each.status for each in repaired.findings] == [Status.RESOLVED]
    assert repaired.verdict is Verdict.PASS
    assert {each.status for each in lost.findings} == {Status.OPEN}
    assert {each.incident for each in lost.findings if each.rule_id != "HWM-01"} == {
        each.finding_id for each in lost.findings if each.rule_id == "HWM-01"
    }


def test_a_permission_that_comes_to_light_withdraws() -> None:
    """Fault 1's start was moved under an authorisation that was delivered three days late."""
    h = trimmed_prefix("none")
    before = h.judged()
    h.allows(Operation.DELETE_RECORDS, start=0, end=3000, at_ms=T0_MS, hours=2)
    after = h.after(minutes=1).judged()

    assert before.verdict is Verdict.VIOLATION
    assert [each.status for each in after.findings if each.rule_id == "START-02"] == [Status.WITHDRAWN]


def test_a_loss_that_somebody_takes_is_closed() -> None:
    """Accepted, with the principal: not resolved, and no longer a violation."""
    h = trimmed_prefix("none")
    h.say(
        LossAccepted,
        component="cli",
        start_offset=0,
        end_offset=3000,
        principal="alice",
        reason="it was test data",
        finding_id=None,
    )
    judged = h.after(minutes=30).judged()

    assert {each.status for each in judged.findings} == {Status.ACCEPTED, Status.RESOLVED}
    assert judged.verdict is Verdict.PASS


def test_a_suppressed_finding_is_counted_and_no_pass() -> None:
    """With an owner and a reason, until a day: the log is no less in VIOLATION, and both are said."""
    h = trimmed_prefix("none")
    suppression = Suppression(
        rule_id="START-02",
        topic_pattern="ord*",
        owner="alice",
        reason="being looked into",
        expires_at_ms=h.now_ms + 1,
    )
    terms = Terms(suppressions=(suppression,))
    now = judge(h.state(terms), terms, from_ms=T0_MS)
    later = judge(fold(h.state(terms), [], terms, as_of_ms=h.now_ms + 1), terms, from_ms=T0_MS)

    assert (now.verdict, now.statement.open_findings) == (Verdict.VIOLATION, ())
    assert len(now.statement.suppressed_findings) == 1
    assert now.statement.claim.endswith("somebody answers for it")
    assert (later.verdict, later.statement.suppressed_findings) == (Verdict.VIOLATION, ())
    assert later.findings[0].suppressed_by is None
    with pytest.raises(ValueError, match="owner"):
        Suppression(rule_id="START-02", topic_pattern="*", owner=" ", reason="x", expires_at_ms=1)


def test_inside_the_grace_it_is_suspect() -> None:
    """A minute behind an unexplained start nothing is condemned, and nothing passed."""
    h = fixture("kip405")
    h.start(1, 0, 3000)
    judged = h.after(minutes=1).judged()

    assert judged.verdict is Verdict.SUSPECT
    assert "START-02" in judged.statement.suspect
    assert judged.findings == ()


def test_ten_topics_at_once_are_one_incident_and_critical() -> None:
    """Fault 7's other 199 topics: each RET-03 alone is E, together C, and one page."""
    logs = []
    for at in range(12):
        h = fixture("none")
        h.log = LOG._replace(topic_id=f"T{at}")
        h.told = []
        h.seqs.clear()
        h.declares("CHG-0", total_retention_ms='"7d"')
        h.config("retention.ms", str(7 * DAY_MS), first=True)
        h.after(minutes=1).config("retention.ms", str(HOUR_MS), str(7 * DAY_MS))
        h.after(hours=2)
        state = fold(newborn(h.log, TOPIC), h.told, TERMS, as_of_ms=h.now_ms)
        logs.append(judge(state, TERMS, from_ms=T0_MS))
    alone = merged(each for one in logs[:9] for each in one.findings)
    together = merged(each for one in logs for each in one.findings)

    assert {(each.rule_id, each.severity) for each in alone} == {("RET-03", "E")}
    assert {(each.rule_id, each.severity) for each in together} == {("RET-03", "C")}
    assert len(together) == 12
    assert len({each.incident for each in together}) == 1


def test_a_topics_finding_is_one_over_its_partitions() -> None:
    """Two partitions find the same RET-03: one id, one finding."""
    both = []
    for partition in (0, 1):
        h = retention_shrunk("none")
        log = LOG._replace(partition=partition)
        said = [
            replace(each, event=replace(each.event, log=log)) if isinstance(each.event, LogEvent) else each
            for each in h.told
        ]
        both.append(judge(fold(newborn(log, TOPIC), said, TERMS, as_of_ms=h.now_ms), TERMS, from_ms=T0_MS))
    ids = [{each.finding_id for each in one.findings if each.rule_id == "RET-03"} for one in both]

    assert ids[0] == ids[1]
    assert [each.rule_id for each in merged([*both[0].findings, *both[1].findings])].count("RET-03") == 1
    assert judgement_hash(both) == judgement_hash(reversed(both))


def test_the_blast_limit_counts_what_no_retention_explains() -> None:
    """Nine segments that a shrunk retention took, undeclared, under a limit of eight."""
    keeps = {"total_retention_ms": '"7d"', "blast_limit_segments_per_hour": "8"}
    h = fixture("none", declared=keeps)
    h.config("retention.ms", str(HOUR_MS), str(7 * DAY_MS))
    h.after(minutes=1)
    for index in range(9):
        _, base, end, newest_ms = segment(index)
        h.dropped(1, base, end, newest_ms)
    h.start(1, 0, 9000, local=9000)
    over = blasts([h.after(hours=3).state()])

    assert [(each.segments, each.limit) for each in over] == [(9, 8)]
    assert blasts([fixture("none").after(hours=1).state()]) == ()


def test_an_agent_asks_before_it_deletes() -> None:
    """What the audit would condemn is kept; what has expired may go; without evidence nothing may."""

    def asks(index: int, h: History) -> MayDelete | Keep:
        state = h.state()
        before = len(h.told)
        h.after(minutes=2).expunged(*segment(index)[:3], finish=False)
        return would_be(state, h.told[before:], TERMS)

    assert isinstance(asks(0, fixture("ours", declared=TEN_HOURS)), MayDelete)
    kept = asks(5, fixture("ours", declared=TEN_HOURS))
    assert isinstance(kept, Keep)
    assert any(reason.startswith("DEL-01") for reason in kept.reasons)
    held = fixture("ours", declared=TEN_HOURS)
    acts.holds(held)
    assert isinstance(asks(0, held), Keep)
    assert would_be(newborn(LOG, TOPIC), [], TERMS) == Keep(reasons=("nothing was asked",))


@pytest.mark.slow
def test_a_log_s_state_does_not_grow_with_its_history() -> None:
    """Forty days of rolling and expiring: the state of day 40 is no larger than that of day 10."""
    h = fixture("none", declared={"total_retention_ms": '"10h"'}, retention_ms=10 * HOUR_MS)
    from rules.machine import encode

    state = fold(newborn(LOG, TOPIC), h.told, TERMS)
    sizes = {}
    for hour in range(40 * 24):
        before = len(h.told)
        h.now_ms = T0_MS + hour * HOUR_MS + 5 * MINUTE_MS
        low = hour * 1000
        for broker in (1, 2, 3):
            h.closed(broker, 10_000 + low, 11_000 + low, T0_MS + hour * HOUR_MS)
            h.dropped(broker, low, low + 1000, T0_MS + (hour - 10) * HOUR_MS)
            h.start(broker, low, low + 1000, local=low + 1000, watermark=11_500 + low)
            h.watermark(broker, 11_500 + low, start=low + 1000, size_bytes=11_010_048)
        state = fold(state, h.told[before:], TERMS)
        sizes[hour] = len(encode(state))
    judged = judge(state, TERMS, from_ms=T0_MS)

    assert judged.findings == ()
    assert sizes[40 * 24 - 1] <= sizes[10 * 24] * 1.02
    assert found(judged) == set()


def test_a_change_that_three_agents_tell_is_one_change() -> None:
    """Every agent reads the metadata log: the same events under three emitters count once (decision 13)."""
    h = fixture("none")
    first = len(h.told)
    h.config("retention.ms", str(HOUR_MS), str(7 * DAY_MS))
    h.after(minutes=10).config("retention.ms", str(7 * DAY_MS), str(HOUR_MS))
    h.elects(2)
    again = []
    for broker in (2, 3):
        log_seqs = iter(range(9))
        for seq, each in enumerate(h.told[first:]):
            again.append(
                replace(
                    each,
                    speaker=each.speaker._replace(broker_id=broker),
                    seq=seq,
                    log_seq=None if each.log_seq is None else next(log_seqs),
                    observed_at_ms=each.observed_at_ms + 500,
                )
            )
    h.after(hours=2)
    state = fold(newborn(LOG, TOPIC), [*h.told, *again], TERMS, as_of_ms=h.now_ms)
    judged = judge(state, TERMS, from_ms=T0_MS)
    [flap] = judged.findings

    assert flap.rule_id == "RET-03"
    assert flap.note.endswith("changes=2, reverted")
    assert listen({}, [*h.told, *again], TERMS, as_of_ms=h.now_ms).losses == ()


def test_a_partition_without_a_leader_is_not_judged() -> None:
    """Nobody could read it: no PASS."""
    h = fixture("none")
    h.elects(-1, ())
    judged = h.after(hours=1).judged()

    assert judged.verdict is Verdict.INDETERMINATE
    assert judged.findings == ()


def test_a_copy_that_is_long_gone_is_remembered_by_name() -> None:
    """Its deletion told once more is no unknown one; a copy finished under its id is illegal."""
    h = fixture("kip405", declared=TEN_HOURS, retention_ms=10 * HOUR_MS, versioned=True)
    h.after(minutes=2)
    for broker in (1, 2, 3):
        h.start(broker, 0, 1000)
    h.expunged("s0", 0, 1000)
    offset = h.tier_offset
    h.after(minutes=50)
    h.tier(DeleteStarted, "s0", 0, 1000, cause=None, broker=2, metadata_offset=offset - 1)
    quiet = h.after(minutes=1)
    before = quiet.judged()
    assert "s0" in quiet.state().buried
    assert "s0" not in quiet.state().tier
    h.copied("s0", 0, 1000, newest(0))
    after = h.after(minutes=1).judged()

    assert {each.rule_id for each in before.findings} <= {"RET-05"}
    assert {each.rule_id for each in after.findings} - {"RET-05"} == {"SEG-01"}


@pytest.mark.parametrize(
    ("epochs", "wrong"),
    [
        (((5, 10_000),), None),
        (((3, 9_000), (4, 10_100), (5, 10_200)), None),
        (((4, 10_100), (4, 10_200)), "comes after"),
        (((4, 10_200), (5, 10_100)), "comes after"),
        (((4, 9_000), (5, 10_400)), "begins at 10400"),
        (((4, 10_000), (6, 10_100)), "not known to the leader of epoch 5"),
    ],
)
def test_a_copys_epochs_rise_inside_it_and_are_known(
    epochs: tuple[tuple[int, int], ...], wrong: str | None
) -> None:
    """SEG-04 by the epochs that its record names; the first may have begun before it."""
    h = fixture("ours")
    h.tier(
        CopyStarted,
        "s10",
        10_000,
        10_400,
        data_end=10_400,
        record_count=400,
        size_bytes=MIB,
        max_timestamp_ms=T0_MS,
        epochs=epochs,
    )
    notes = [each.note for each in h.after(minutes=5).judged().findings if each.rule_id == "SEG-04"]

    assert len(notes) == (wrong is not None)
    assert wrong is None or wrong in notes[0]


def test_a_replay_into_another_topic_never_closes_what_this_log_lost() -> None:
    """Neither by itself nor together with a later restore of other offsets: the log is as short as before."""
    h = trimmed_prefix("none")
    acts.restores(h, 0, 3000, RestoreTarget.TOPIC)
    acts.restores(h.after(minutes=5), 9000, 9500)
    judged = h.after(minutes=5).judged()

    assert {each.status for each in judged.findings if each.rule_id == "START-02"} == {Status.OPEN}


@pytest.mark.parametrize(
    ("planned", "is_found"), [((0, 3000), False), ((0, 4000), True), ((None, None), False)]
)
def test_a_restore_that_is_not_what_was_planned_is_found(
    planned: tuple[int | None, int | None], is_found: bool
) -> None:
    """RST-01 by the plan's range; what was put back counts all the same."""
    h = trimmed_prefix("none")
    acts.restores(h, 0, 3000, planned=planned)
    judged = h.after(minutes=5).judged()

    assert any(each.rule_id == "RST-01" for each in judged.findings) is is_found
    assert {each.status for each in judged.findings if each.rule_id == "START-02"} == {Status.RESTORED}
