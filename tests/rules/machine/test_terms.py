"""What a log is judged by beside its evidence: intervals, deadlines, exemptions."""

from __future__ import annotations

import pytest

from rules.events import ConfigEffective, ConfigResource, ConfigSource, Source
from rules.machine import RuleTerms, Suppression, Terms, decode, encode, fold
from rules.machine.authority import terms_here
from rules.machine.verdict import Verdict, judge
from rules.moments import read_moment, write_moment
from rules.policy.suppressions import read_line
from tests.rules.machine.faults import trimmed_prefix
from tests.rules.machine.histories import BROKERS, HOUR_MS, MINUTE_MS, T0_MS, TERMS, History, fixture, newest

CHECK = "log.retention.check.interval.ms"


def _told(h: History, broker: int, key: str, value: str) -> None:
    h.say(
        ConfigEffective,
        broker,
        "configs",
        resource=ConfigResource.BROKER,
        topic_id=None,
        topic=None,
        broker_id=broker,
        key=key,
        old_value=None,
        new_value=value,
        config_source=ConfigSource.STATIC,
        is_first_sight=True,
        source=Source.ADMIN,
        metadata_offset=None,
        is_coalesced=False,
        not_before_ms=None,
    )


def test_graces_are_made_of_what_the_brokers_of_a_log_do() -> None:
    """The longest of those that hold it; who was not told goes by Kafka's default; a state keeps it."""
    h = fixture("none")
    _told(h, 1, CHECK, str(HOUR_MS))
    _told(h, 9, CHECK, str(20 * HOUR_MS))  # holds nothing of it
    state = decode(encode(h.state()))

    assert terms_here(state, TERMS).check_interval_ms == HOUR_MS
    for broker in BROKERS:
        _told(h, broker, CHECK, "1000")
    assert terms_here(h.state(), TERMS).check_interval_ms == 1000
    _told(h, 2, CHECK, "300000")
    assert terms_here(h.state(), TERMS).check_interval_ms == 300_000
    assert terms_here(fixture("none").state(), TERMS) == TERMS


def test_what_cannot_be_read_keeps_kafkas_default() -> None:
    """A value that is no number, or unset again."""
    h = fixture("none")
    _told(h, 1, CHECK, "often")

    assert terms_here(h.state(), TERMS) == TERMS
    assert h.state().intervals == {}


def test_a_topics_own_delay_stands_before_its_brokers() -> None:
    """file.delete.delay.ms of the topic, where it has one."""
    h = fixture("none")
    for broker in BROKERS:
        _told(h, broker, "log.segment.delete.delay.ms", str(HOUR_MS))
    assert terms_here(h.state(), TERMS).delete_delay_ms == HOUR_MS
    h.config("file.delete.delay.ms", "7")

    assert terms_here(h.state(), TERMS).delete_delay_ms == 7


def test_a_slow_broker_is_given_its_time() -> None:
    """An expired head is RET-05 after twice the check interval that is set, and not before."""
    kafkas, slow = fixture("none"), fixture("none")
    for broker in BROKERS:
        _told(slow, broker, CHECK, str(24 * HOUR_MS))
    due = newest(0) + 7 * 24 * HOUR_MS
    for h in (kafkas, slow):
        h.now_ms = due + 2 * HOUR_MS

    assert [each.rule_id for each in kafkas.judged().findings] == ["RET-05"]
    assert slow.judged().findings == ()


def test_the_policy_says_by_when_a_copy_must_have_ended() -> None:
    """SEG-11 after the topic's own deadline; undeclared, after an hour."""
    h = fixture("ours")
    h.copy_started("s10", 10_000, 10_400, T0_MS)
    h.after(hours=2)
    assert [each.rule_id for each in h.judged().findings if each.rule_id == "SEG-11"] == ["SEG-11"]

    patient = fixture("ours")
    patient.declares("CHG-9", copy_deadline_ms='"3h"')
    patient.copy_started("s10", 10_000, 10_400, T0_MS)
    patient.after(hours=2)
    assert [each.rule_id for each in patient.judged().findings if each.rule_id == "SEG-11"] == []


def test_what_the_policy_lets_be_is_open_and_counted() -> None:
    """By rule, until the declared moment: owner and reason are told; then it pages again."""
    h = trimmed_prefix("none")
    until = h.now_ms // MINUTE_MS * MINUTE_MS + HOUR_MS
    h.declares("CHG-9", audit_suppress=f'["START-02 until {write_moment(until)} by alice: a known fault"]')
    now = h.judged()
    later = judge(fold(h.state(), [], TERMS, as_of_ms=until), TERMS, from_ms=T0_MS)

    [root] = [each for each in now.findings if each.rule_id == "START-02"]
    assert root.suppressed_by == f"alice, until {write_moment(until)}: a known fault"
    assert root.finding_id in now.statement.suppressed_findings
    assert now.verdict is Verdict.VIOLATION
    assert later.statement.suppressed_findings == ()


def test_one_finding_alone_can_be_let_be() -> None:
    """Named by its id; its neighbours are not."""
    h = trimmed_prefix("none")
    [first, *others] = h.judged().findings
    terms = Terms(
        suppressions=(
            Suppression(
                rule_id="",
                topic_pattern="",
                owner="bob",
                reason="seen",
                expires_at_ms=h.now_ms + HOUR_MS,
                finding_id=first.finding_id,
            ),
        )
    )

    judged = {each.finding_id: each for each in judge(h.state(), terms, from_ms=T0_MS).findings}
    assert judged[first.finding_id].suppressed_by is not None
    assert all(judged[each.finding_id].suppressed_by is None for each in others)


def test_a_rule_set_on_trial_leaves_out_weighs_and_waits() -> None:
    """A rule that is disabled finds nothing and is not applied; a severity and a grace are its."""
    h = trimmed_prefix("none")
    out = Terms(rules=(RuleTerms(rule_id="START-02", is_disabled=True),))
    light = Terms(rules=(RuleTerms(rule_id="START-02", severity="W"),))
    patient = Terms(rules=(RuleTerms(rule_id="START-04", grace_ms=100 * HOUR_MS),))

    without = judge(h.state(out), out, from_ms=T0_MS)
    assert "START-02" not in {each.rule_id for each in without.findings}
    assert "START-02" not in without.statement.applied
    lighter = judge(h.state(light), light, from_ms=T0_MS)
    assert {each.severity for each in lighter.findings if each.rule_id == "START-02"} == {"W"}
    waiting = judge(h.state(patient), patient, from_ms=T0_MS)
    assert "START-04" not in {each.rule_id for each in waiting.findings}


@pytest.mark.parametrize(
    "line",
    [
        "RET-05",
        "RET-05 until 2026-12-31: why",
        "RET-05 until never by bob: why",
        "RET-05 until 2026-12-31 by bob:",
        "RET-99 until 2026-12-31 by bob: no such rule",
        "RET-05 until 2026-12-31 by  : why",
        "RET-05 until 2026-12-31 by bob: two\nlines",
    ],
)
def test_a_suppression_without_an_end_an_owner_or_a_reason_is_refused(line: str) -> None:
    """Nor is one of a rule that does not exist."""
    with pytest.raises(ValueError, match="RULE until"):
        read_line(line)


def test_a_suppression_is_written_in_one_way() -> None:
    """However it was declared."""
    told = read_line("RET-05 until 2026-12-31 by team a: so: be it")

    assert told.text == "RET-05 until 2026-12-31T00:00Z by team a: so: be it"
    assert read_line(told.text) == told
    assert read_moment(write_moment(1_763_424_001_000)) == 1_763_424_001_000
