"""Missing evidence is never PASS and resolves nothing; doubled and doubtful evidence is named."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from rules.events import Heartbeat, IsrChanged, LogBaseline, Source
from rules.identity import LogId
from rules.machine import Speaker, Told, fold, newborn
from rules.machine.emitters import SILENT_AFTER_MS, Heard, listen
from rules.machine.verdict import Judgement, Status, Verdict, judge
from tests.rules.machine.faults import (
    middle_vanishes,
    retention_shrunk,
    trimmed_and_the_tier_follows,
    trimmed_prefix,
)
from tests.rules.machine.histories import DAY_MS, LOG, T0_MS, TERMS, TOPIC, History, fixture

HISTORIES = {
    "untouched kip405": lambda: fixture("kip405").after(hours=2),
    "untouched ours": lambda: fixture("ours").after(hours=2),
    "untouched none": lambda: fixture("none").after(hours=2),
    "fault 1": lambda: trimmed_prefix("kip405"),
    "fault 2": lambda: trimmed_and_the_tier_follows("kip405"),
    "fault 7": lambda: retention_shrunk("none"),
    "fault 16": lambda: middle_vanishes("none"),
}


def _beating(h: History) -> History:
    """Every emitter tells last how far it has counted."""
    for speaker in sorted(h.seqs):
        h.say(
            Heartbeat,
            speaker.broker_id,
            speaker.component,
            last_seq=h.seqs[speaker] - 1,
            log_count=1,
            log_seqs_digest="",
            lost_count=0,
            metadata_offset=None,
        )
    return h


def _is_made_up_for(lost: Told, left: list[Told]) -> bool:
    """A baseline of the same observer behind it tells the whole state again."""
    return any(
        isinstance(each.event, LogBaseline) and each.speaker == lost.speaker and each.seq > lost.seq
        for each in left
    )


def _run(said: Iterable[Told], as_of_ms: int) -> tuple[Heard, Judgement]:
    every = list(said)
    heard = listen({}, every, TERMS, as_of_ms=as_of_ms)
    gaps = [gap for loss in heard.losses for gap in loss.as_gaps(LOG.cluster_id)]
    state = fold(newborn(LOG, TOPIC), [*every, *gaps], TERMS, as_of_ms=as_of_ms)
    return heard, judge(state, TERMS, from_ms=T0_MS - DAY_MS, blind=heard.is_blind((1, 2, 3)))


@pytest.mark.parametrize("name", HISTORIES)
def test_any_one_event_lost_is_told_and_never_a_pass(name: str) -> None:
    """Each event in turn is dropped: AUD-01, no PASS, nothing resolved, nothing found that is not so."""
    h = _beating(HISTORIES[name]())
    whole_heard, whole = _run(h.told, h.now_ms)
    assert whole_heard.findings == ()
    true_ids = {each.finding_id for each in whole.findings}

    for at, lost in enumerate(h.told):
        left = [*h.told[:at], *h.told[at + 1 :]]
        heard, judged = _run(left, h.now_ms)
        if isinstance(lost.event, Heartbeat):
            continue  # the next one tells of it; that nobody beats is `silent`, below
        assert {each.rule_id for each in heard.findings} == {"AUD-01"}, lost
        if _is_made_up_for(lost, left):
            continue
        assert judged.verdict is not Verdict.PASS, lost
        assert Status.RESOLVED not in {each.status for each in judged.findings}, lost
        if whole.verdict is Verdict.PASS:
            assert judged.verdict is Verdict.INDETERMINATE, (lost, judged.findings)
            assert not true_ids


def test_a_gap_closes_at_the_next_baseline() -> None:
    """An observer's event is lost on a quiet log; six hours later its baseline agrees, and the log passes."""
    h = fixture("none")
    h.after(minutes=5).watermark(2, 10_500, size_bytes=1)
    lost = h.told.pop()
    h.after(hours=1).watermark(2, 10_500, size_bytes=11_010_048)
    _, before = _run(_beating(h).told, h.now_ms)
    h.after(hours=5)
    h.baseline(2, start=0, local=0, watermark=10_500, size_bytes=11_010_048)
    _, after = _run(_beating(h).told, h.now_ms)

    assert lost.log_seq is not None
    assert before.verdict is Verdict.INDETERMINATE
    assert after.verdict is Verdict.PASS


def test_a_baseline_that_differs_is_judged() -> None:
    """What was lost was the rise of the start itself: the baseline shows it, and nothing justifies it."""
    h = fixture("kip405")
    h.after(minutes=5).start(1, 0, 3000)
    h.told.pop()
    h.after(hours=1).baseline(1, start=3000, local=9000, watermark=10_500, size_bytes=1_572_864)
    _, judged = _run(h.after(hours=1).told, h.now_ms)

    assert [each.rule_id for each in judged.findings if each.severity == "C"] == ["START-02"]


def test_an_emitter_that_fell_silent_is_named_and_its_logs_are_not_judged() -> None:
    """AUD-03: two observers beat, the third does not; and once its broker is gone for good, nobody waits."""
    h = fixture("none").after(hours=2)
    h = _beating(h)
    told = [
        each for each in h.told if not (isinstance(each.event, Heartbeat) and each.speaker.broker_id == 3)
    ]
    heard, judged = _run(told, h.now_ms + SILENT_AFTER_MS // 2)

    assert [each.rule_id for each in heard.findings] == ["AUD-03"]
    assert judged.verdict is Verdict.INDETERMINATE


def test_two_contents_under_one_number_or_one_id() -> None:
    """AUD-02; a delivery that is repeated as it was is none."""
    h = _beating(fixture("none"))
    one = h.told[5]
    assert one.event is not None
    other = replace(one, event=replace(one.event, occurred_at_ms=one.event.occurred_at_ms + 1))
    again = replace(other, seq=h.seqs[one.speaker])

    assert listen({}, [*h.told, one], TERMS, as_of_ms=h.now_ms).findings == ()
    for doubled in (other, again):
        found = listen({}, [*h.told, doubled], TERMS, as_of_ms=h.now_ms).findings
        assert [each.rule_id for each in found] == ["AUD-02"]


def test_numbers_lost_with_a_spool_are_a_hole_of_the_run_before() -> None:
    """A new run says which it follows, and how far that had counted: what it spooled last never came."""
    h = _beating(fixture("none"))
    speaker = Speaker(1, "agent", 8)
    newest = replace(
        h.told[30],
        speaker=speaker,
        seq=0,
        log_seq=0,
        follows=(7, h.seqs[Speaker(1, "agent", 7)] + 4),
        observed_at_ms=h.now_ms,
    )
    heard = listen({}, [*h.told, newest], TERMS, as_of_ms=h.now_ms)

    assert [each.rule_id for each in heard.findings] == ["AUD-01"]
    assert [loss.unplaced for loss in heard.losses] == [5]


def test_carried_listening_is_listening_at_once() -> None:
    """Two slices, one state between them: the same holes, and a hole that is filled later is none."""
    h = _beating(fixture("ours").after(hours=2))
    middle = len(h.told) // 2
    late = h.told[middle - 3]
    first = [each for each in h.told[:middle] if each is not late]
    heard = listen({}, first, TERMS, as_of_ms=h.now_ms)
    second = listen(heard.states, h.told[middle:], TERMS, as_of_ms=h.now_ms)
    healed = listen(second.states, [late], TERMS, as_of_ms=h.now_ms)
    at_once = listen({}, [*first, *h.told[middle:]], TERMS, as_of_ms=h.now_ms)

    assert {each.finding_id for each in second.findings} == {each.finding_id for each in at_once.findings}
    assert len(second.losses) == 1
    assert healed.losses == ()


def test_a_kind_that_is_not_known_counts_as_heard() -> None:
    """An agent ahead of the auditor: no hole, and its day is indeterminate for what it may have said."""
    h = _beating(fixture("none"))
    strange = replace(h.told[30], event=None, kind="seen_from_space")
    said = [*h.told[:30], strange, *h.told[31:]]
    heard, judged = _run(said, h.now_ms)

    assert heard.findings == ()
    assert judged.verdict is Verdict.INDETERMINATE


def test_nothing_heard_is_no_pass() -> None:
    """An empty input is indeterminate."""
    state = newborn(LogId("c1", "T9", 0), "empty")

    assert judge(state, TERMS, from_ms=T0_MS).verdict is Verdict.INDETERMINATE


def _says_in_sync(h: History, broker: int, offset: int, in_sync: tuple[int, ...]) -> None:
    """As every host sees it in the metadata log, sooner or later."""
    h.say(
        IsrChanged,
        broker,
        source=Source.KRAFT,
        metadata_offset=offset,
        is_coalesced=False,
        not_before_ms=None,
        isr=in_sync,
    )


def _one_host_behind() -> History:
    """Broker 1's agent tells two changes and goes on; only then broker 2's tells the older of them."""
    h = fixture("none").after(minutes=1)
    first = h.kraft_offset + 1
    _says_in_sync(h, 1, first, (1, 2))
    _says_in_sync(h, 1, first + 1, (1, 2, 3))
    h.watermark(1, 10_511)
    h.watermark(1, 10_512)
    h.after(seconds=2)
    _says_in_sync(h, 2, first, (1, 2))
    _says_in_sync(h, 2, first + 1, (1, 2, 3))
    return h.after(minutes=1)


def test_a_host_that_is_behind_makes_no_numbers_missing() -> None:
    """Facts take each other's places in the line: a number that comes after a higher one, by that alone, was
    never missing."""
    h = _one_host_behind()

    statement = h.judged().statement

    assert (statement.verdict, statement.missing) == (Verdict.PASS, ())


def test_a_number_that_is_missing_stays_so_beside_one_that_is_not() -> None:
    """Of the same run, or of another beside that broker: told with what only came out of its order."""
    h = _one_host_behind()
    [reading] = [each for each in h.told if getattr(each.event, "high_watermark", None) == 10_511]
    [last] = [each for each in h.told if getattr(each.event, "high_watermark", None) == 10_512]
    other = replace(last, speaker=last.speaker._replace(component="metadata"), seq=90, log_seq=90)

    for said in ([each for each in h.told if each is not reading], [*h.told, other]):
        state = fold(newborn(LOG, TOPIC), said, TERMS, as_of_ms=h.now_ms)
        statement = judge(state, TERMS, from_ms=0).statement
        assert statement.verdict is Verdict.INDETERMINATE
        assert any("are missing" in each for each in statement.missing)
