"""What no single log can say: one finding of many logs, many topics at once, too much at once, and emitters.

    logs' findings      merged by id: a topic's finding is one, whichever of its logs show it
    OPS-02              segments that no retention explains, by topic and hour
    AUD-01 to AUD-07    of the evidence itself, and of the auditor

What happened before the lateness horizon is carried from the findings before: it is not withdrawn because
nobody counts that hour any more. Of an hour that is still counted the count decides: a declaration that comes
late lets go what was found too much, and the finding is withdrawn, as it would never have been in one run.

Owns the merge. Invariant: the result does not depend on the order of logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from audit_engine.run.outcomes import Told, finding_of, told
from rules.machine.fleet import Blast, merged
from rules.machine.terms import HOUR_MS, Terms
from rules.machine.verdict import Finding, Status

CARRIED = frozenset({"OPS-02", "AUD-04", "AUD-06"})
STATES = frozenset(
    {"AUD-01", "AUD-03", "AUD-05", "AUD-07"}
)  # of no log: what is not found any more is made good


def standing(
    of_logs: Iterable[Told],
    blasts: Iterable[Blast],
    of_emitters: Iterable[Mapping[str, Any]],
    before: Iterable[Told],
    *,
    as_of_ms: int,
    terms: Terms | None = None,
) -> list[dict[str, Any]]:
    """Every finding that some state has, once; `before` are those that stood after the run before."""
    known = {each["finding_id"]: each for each in before}
    logs = [finding_of(each) for each in of_logs]
    found = [_of_blast(each, known, as_of_ms) for each in blasts]
    found += [_of_emitter(each, known, as_of_ms) for each in of_emitters]
    ids = {each.finding_id for each in (*logs, *found)}
    found += [
        finding_of(each)
        for each in known.values()
        if each["rule_id"] in CARRIED
        and each["status"] == Status.OPEN.value
        and each["finding_id"] not in ids
        and not _is_counted(each, as_of_ms, terms or Terms())
    ]
    found += [
        replace(finding_of(each), status=Status.RESOLVED, ended_ms=as_of_ms)
        for finding_id, each in known.items()
        if each["rule_id"] in STATES and each["status"] == Status.OPEN.value and finding_id not in ids
    ]
    beside = [_let_be(each, terms, as_of_ms) for each in found]  # of logs it is said already
    return [told(each) for each in merged([*logs, *beside])]


def _is_counted(finding: Told, as_of_ms: int, terms: Terms) -> bool:
    """Whether the logs' states still say what went in its hour (`rules.machine.fold` forgets older ones)."""
    if finding["rule_id"] != "OPS-02":
        return False
    return int(finding["anchor"]) + HOUR_MS >= as_of_ms - terms.lateness_ms


def _let_be(finding: Finding, terms: Terms | None, as_of_ms: int) -> Finding:
    said = None if terms is None else terms.suppresses(finding.rule_id, "", as_of_ms, finding.finding_id)
    return replace(finding, suppressed_by=None if said is None else str(said))


def _of_blast(blast: Blast, known: Mapping[str, Told], as_of_ms: int) -> Finding:
    return _bare(
        blast.finding_id,
        "OPS-02",
        "C",
        f"{blast.cluster_id}/{blast.topic_id}",
        str(blast.hour * HOUR_MS),
        f"{blast.segments} segments went within an hour, and {blast.limit} may",
        _since(known, blast.finding_id, as_of_ms),
    )


def _of_emitter(about: Mapping[str, Any], known: Mapping[str, Told], as_of_ms: int) -> Finding:
    return _bare(
        about["finding_id"],
        about["rule_id"],
        about["severity"],
        about["subject"],
        about["anchor"],
        about["note"],
        _since(known, about["finding_id"], as_of_ms),
    )


def _since(known: Mapping[str, Told], finding_id: str, as_of_ms: int) -> int:
    before = known.get(finding_id)
    return int(before["opened_ms"]) if before is not None else as_of_ms


def _bare(
    finding_id: str, rule_id: str, severity: str, subject: str, anchor: str, note: str, opened_ms: int
) -> Finding:
    return Finding(
        finding_id=finding_id,
        rule_id=rule_id,
        severity=severity,
        subject=subject,
        anchor=anchor,
        ranges=(),
        status=Status.OPEN,
        opened_ms=opened_ms,
        ended_ms=None,
        note=note,
        incident=finding_id,
        parent=None,
        recoverable_offsets=0,
        lost_offsets=0,
        held_by=(),
        suppressed_by=None,
    )
