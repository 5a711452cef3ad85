"""Runs to be reported, of values that the code of a run makes: folded, judged, told as tables hold them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from audit_engine.report.values import Gathered, Moment
from audit_engine.run.fleet import standing
from audit_engine.run.one_log import canonical
from audit_engine.run.outcomes import changes, told
from rules.catalogue import rule_set_hash
from rules.identity import LogId
from rules.machine import LogState, Terms
from rules.machine.findings import finding_id
from rules.machine.verdict import Finding, Statement, Verdict, judge
from tests.rules.machine.faults import FAULTS
from tests.rules.machine.histories import DAY_MS, LOG, T0_MS, History, fixture

TERMS = Terms()
TOPICS = ("payments", "shipments", "clicks", "inventory", "sessions", "invoices")
GATE = tuple(
    {"name": name, "is_met": True, "detail": ""} for name in ("volume", "read", "quarantined", "clocks")
)
MISSING = (
    "replica: nobody watches the disk of broker 3, which leads",
    "silent: broker 3's observer was not heard up to the cut",
)


def fault(number: int, mode: str, at: int = -1) -> History:
    """The last of this number and mode, as it is at its end."""
    return [each for each in FAULTS if (each.number, each.mode) == (number, mode)][at].make(mode)


def stated(statement: Statement) -> dict[str, Any]:
    """As its row in audit_statements, read back."""
    members = json.loads(canonical({name: getattr(statement, name) for name in statement.__slots__}))
    return {**members, "statement_hash": statement.hash}


def passing(topics: Iterable[str], partitions: int) -> list[Statement]:
    one = judge(fixture("kip405").state(), TERMS, from_ms=T0_MS - DAY_MS).statement
    return [
        replace(
            one,
            topic=topic,
            topic_id=f"{topic}-id",
            partition=partition,
            log_start=1_000 * partition,
            high_watermark=987_654 + 1_013 * partition,
            as_of_ms=T0_MS,
        )
        for topic in topics
        for partition in range(partitions)
    ]


def dark(statement: Statement, *missing: str) -> Statement:
    return replace(statement, verdict=Verdict.INDETERMINATE, missing=missing or MISSING)


def run_row(
    number: int, verdicts: dict[str, int], changed: dict[str, int] | None = None, **own: Any
) -> dict[str, Any]:
    """As audit_runs has it, read back."""
    order = [each.value for each in Verdict]
    worst = max((each for each in verdicts if verdicts[each]), key=order.index, default="INDETERMINATE")
    logs = sum(verdicts.values())
    counts = {
        "events": 41 * logs,
        "logs": logs,
        "refolded": 0,
        "verdicts": verdicts,
        "changes": changed or {},
    }
    return {
        "run": number,
        "attempt": f"{number:032x}",
        "as_of_ms": T0_MS + (number - 30) * DAY_MS + 6 * 3_600_000,
        "cut": {},
        "rules_hash": rule_set_hash(),
        "terms": {},
        "content_hash": "5ea" * 21 + "5",
        "gate": list(GATE),
        "counts": counts,
        "verdict": worst,
        "began_ms": T0_MS,
        "ended_ms": T0_MS + 94_000,
        "seawall_version": "0.1.0",
        **own,
    }


def gathered(
    statements: Sequence[Statement],
    *,
    findings: Iterable[Finding] = (),
    states: Iterable[LogState] = (),
    before: Sequence[Statement] | None = None,
    findings_before: Iterable[Finding] = (),
    past: Sequence[dict[str, Any]] = (),
    emitters: Sequence[dict[str, Any]] = (),
    **own: Any,
) -> Gathered:
    """One run over these logs, behind `past`."""
    known = standing([told(each) for each in findings_before], (), (), (), as_of_ms=T0_MS)
    now = standing([told(each) for each in findings], (), (), known, as_of_ms=T0_MS)
    outcomes = [{"change": each.change.value, **each.finding} for each in changes(known, now)]
    verdicts = Counter(each.verdict.value for each in statements)
    number = past[-1]["run"] + 1 if past else 1
    return Gathered(
        runs=(*past, run_row(number, dict(verdicts), Counter(each["change"] for each in outcomes), **own)),
        statements=[stated(each) for each in statements],
        before=None if before is None else {_key(each): each.verdict.value for each in before},
        findings=json.loads(json.dumps(now)),
        changes=json.loads(json.dumps(outcomes)),
        emitters=emitters or heard(3),
        states={each.log: each for each in states},
        courses={each.log: course_of(each, [*past, {"run": number, "as_of_ms": T0_MS}]) for each in states},
    )


def course_of(state: LogState, runs: Sequence[dict[str, Any]]) -> list[Moment]:
    """A log that grew evenly, and whose start is what it is since the last run."""
    end, last = state.watermark or 0, len(runs) - 1
    return [
        Moment(
            run=each["run"],
            at_ms=each["as_of_ms"],
            start=state.start if at == last else 0,
            watermark=end - 100 * (last - at),
        )
        for at, each in enumerate(runs)
    ]


def heard(brokers: int, silent: Sequence[int] = ()) -> list[dict[str, Any]]:
    return [
        {"cluster_id": "c1", "broker_id": broker, "component": component, "is_silent": broker in silent}
        for broker in range(1, brokers + 1)
        for component in ("agent", "metadata")
    ]


def _key(statement: Statement) -> LogId:
    return LogId(statement.cluster_id, statement.topic_id, statement.partition)


def past_runs(logs: int, runs: int = 29) -> list[dict[str, Any]]:
    """Mostly well, with a day on which something was not seen, and one that is missing."""
    found = []
    for number in range(1, runs + 1):
        missed = {9: logs // 3, 10: logs // 8, 20: 1}.get(number, 0)
        found.append(run_row(number, {"PASS": logs - missed} | ({"INDETERMINATE": missed} if missed else {})))
    return found


def of_faults(*histories: History) -> tuple[list[Statement], list[Finding], list[LogState]]:
    """Each in a topic id of its own, so that they do not lie on each other."""
    statements: list[Statement] = []
    findings: list[Finding] = []
    states: list[LogState] = []
    for history in histories:
        state = history.state()
        judged = judge(state, TERMS, from_ms=T0_MS)
        states.append(state)
        statements.append(judged.statement)
        findings += judged.findings
    return statements, findings, states


def empty() -> Gathered:
    """A run that heard of no log at all."""
    gate = [{"name": "volume", "is_met": False, "detail": "0 events where at least 1 is expected"}, *GATE[1:]]
    return gathered(
        (), before=passing(TOPICS, 8), past=past_runs(48), emitters=heard(3, silent=(1, 2, 3)), gate=gate
    )


def healthy() -> Gathered:
    logs = passing(TOPICS, 8)
    return gathered(logs, before=logs, past=past_runs(len(logs)))


def one_incident(history: History | None = None) -> Gathered:
    """A prefix trimmed, and the tier follows; a few other logs are not seen, one is waited for."""
    statements, findings, states = of_faults(history or fault(2, "kip405"))
    others = passing(TOPICS, 8)
    now = [*statements, *(dark(each) for each in others[:3]), *others[3:]]
    now[10] = replace(now[10], verdict=Verdict.SUSPECT, suspect=("SEG-11",))
    was = [replace(statements[0], verdict=Verdict.PASS), *others]
    return gathered(
        now,
        findings=findings,
        states=states,
        before=was,
        past=past_runs(len(now)),
        emitters=heard(3, silent=(3,)),
    )


def many(logs: int = 10_000) -> Gathered:
    """Ten thousand logs, of which a few dozen do not pass, and two hundred topics of one incident."""
    statements, findings, states = of_faults(fault(7, "kip405"))
    others = passing([f"events.region-{number:03}.v2" for number in range(logs // 50)], 50)
    now = [*statements, *others][:logs]
    for at in range(1, 240):
        now[at] = dark(now[at], f"silent: broker {at % 7}'s observer was not heard up to the cut")
    for at in range(300, 320):
        now[at] = replace(now[at], verdict=Verdict.SUSPECT, suspect=("SEG-11", "START-02"))
    for at in range(400, 540):
        ours = _elsewhere(findings, now[at])
        now[at] = replace(
            now[at], verdict=Verdict.VIOLATION, open_findings=tuple(each.finding_id for each in ours)
        )
        findings = [*findings, *ours]
    return gathered(now, findings=findings, states=states, before=others, past=past_runs(len(others)))


def _elsewhere(findings: Iterable[Finding], statement: Statement) -> list[Finding]:
    """The same loss in another log."""
    [loss] = [each for each in findings if each.rule_id == "START-02" and each.subject == "c1/T1/0"]
    subject = f"{statement.cluster_id}/{statement.topic_id}/{statement.partition}"
    own_id = finding_id("START-02", 1, subject, loss.anchor)
    return [replace(loss, finding_id=own_id, incident=own_id, parent=None, subject=subject)]


ALL = {"empty": empty, "healthy": healthy, "incident": one_incident, "many": many}
DEFAULT_LOG = LOG


def zoomed() -> Gathered:
    """A log of a billion offsets, of which a hundred went: nothing could be seen of them at its scale."""
    statements, findings, states = of_faults(fault(13, "ours"))
    for state in states:
        state.watermark = 1_234_567_890
        for replica in state.replicas.values():
            replica.watermark = state.watermark
    return gathered(statements, findings=findings, states=states, before=statements, past=past_runs(1))


CLOSING = "</script><script>document.title='run'</script>"
IMAGE = "<img src=x onerror=alert(1)>"
TURNING = "safe\u202egnp.exe\u2066"
SHELL = "$(touch /tmp/run); rm -rf ~ #"


def hostile() -> Gathered:
    """Everything that can come from a table says something that it should not."""
    statements, findings, states = of_faults(fault(7, "kip405"))
    states[0].topic = SHELL
    first, *_ = statements
    logs = [
        replace(first, topic=SHELL),
        *(
            dark(replace(each, topic=topic), f"{IMAGE}: {CLOSING}", TURNING)
            for topic, each in zip((CLOSING, IMAGE, TURNING, "a\nb\u2028c"), passing(TOPICS, 1), strict=False)
        ),
    ]
    said = [replace(each, note=f"{each.note} {CLOSING}{IMAGE}{TURNING}") for each in findings]
    let_be = replace(said[0], finding_id="f" * 32, incident="f" * 32, parent=None, suppressed_by=CLOSING)
    silent = [{"cluster_id": IMAGE, "broker_id": 1, "component": CLOSING, "is_silent": True}]
    gate = [{"name": CLOSING, "is_met": False, "detail": IMAGE}]
    return gathered(
        logs,
        findings=[*said, let_be],
        states=states,
        before=[replace(each, verdict=Verdict.PASS) for each in logs],
        emitters=silent,
        gate=gate,
        seawall_version=CLOSING,
    )
