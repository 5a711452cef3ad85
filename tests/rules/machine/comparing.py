"""The machine's findings in the terms of the second judge, so that the two compare."""

from __future__ import annotations

from typing import Any

from rules.events import LogStartAdvanced, OperationAuthorised, PolicyDeclared
from rules.machine.verdict import Finding, Judgement, Status
from tests.rules.machine import brute_tiers
from tests.rules.machine.brute import JUDGED, Judge
from tests.rules.machine.histories import HOUR_MS, History

SETS = {"START-02", "SEG-02", "SEG-03", "SEG-09", "HWM-02", "START-06"}
BASES = {"RET-01", "RET-02", "DEL-01"}
AT_THE_END = {"SEG-02", "START-06"}


def by_machine(judgement: Judgement) -> dict[str, set[Any]]:
    out: dict[str, set[Any]] = {rule_id: set() for rule_id in JUDGED}
    for each in judgement.findings:
        rule_id = each.rule_id
        if rule_id not in out or each.status is Status.WITHDRAWN:
            continue
        if rule_id in AT_THE_END and each.status is not Status.OPEN:
            continue
        broker = each.subject.rpartition(" ")[2]
        if rule_id in SETS:
            out[rule_id] |= {offset for start, end in each.ranges for offset in range(start, end)}
        elif rule_id in BASES:
            out[rule_id].add(int(each.anchor))
        elif rule_id == "START-01":
            out[rule_id] |= {(int(broker), start, end) for start, end in each.ranges}
        elif rule_id == "START-04":
            out[rule_id].add((int(broker), each.anchor))
        elif rule_id in ("EPO-01", "START-05"):
            out[rule_id].add(int(each.anchor))
        elif rule_id == "RET-03":
            key = each.anchor.partition("@")[0]
            out[rule_id].add((key, each.opened_ms - HOUR_MS))  # the grace in which it may be declared
        elif rule_id == "RET-04":
            starts = [start for start, _ in each.ranges]
            out[rule_id] |= {at for start, end in each.ranges for at in range(start, end, 10)} | set(starts)
        else:
            out[rule_id].add("topic")
    return out


def compared(h: History) -> tuple[str, ...]:
    """Not RET-04 where records were deleted on request, too: which of two causes took a segment is a matter
    of words there. Not START-04 and START-05 where a start fell: START-01 is said, and what was remembered of
    the replica, and of the segments that had gone, went with it.
    """
    left_out = set()
    for each in h.told:
        if isinstance(each.event, OperationAuthorised):
            left_out.add("RET-04")
        if isinstance(each.event, LogStartAdvanced) and each.event.new_start < each.event.old_start:
            left_out |= {"START-04", "START-05"}
    return tuple(each for each in JUDGED if each not in left_out)


def by_brute_force(h: History) -> dict[str, set[Any]]:
    """Two falls to one offset are one finding, by its anchor, as far as the higher one."""
    truth = Judge(h.told, h.now_ms).judge()
    falls: dict[tuple[int, int], int] = {}
    for broker, new, old in truth["START-01"]:
        falls[broker, new] = max(old, falls.get((broker, new), old))
    truth["START-01"] = {(*key, old) for key, old in falls.items()}
    return truth


def tiers_by_machine(judgement: Judgement) -> tuple[dict[str, set[Any]], dict[str, set[Any]]]:
    """What was ever found, and what is open at the end, as `brute_tiers` names it."""
    ever: dict[str, set[Any]] = {rule_id: set() for rule_id in brute_tiers.JUDGED}
    last: dict[str, set[Any]] = {rule_id: set() for rule_id in brute_tiers.STATES}
    for each in judgement.findings:
        rule_id, broker = each.rule_id, each.subject.rpartition(" ")[2]
        if rule_id not in ever or each.status is Status.WITHDRAWN:
            continue
        named: Any = each.anchor
        if rule_id == "META-01":
            named = int(broker)
        elif rule_id == "START-03":
            named = (int(broker), int(each.anchor))
        elif rule_id == "HWM-01":
            named = "log"
        elif rule_id == "RET-06":
            named = int(each.anchor)
        ever[rule_id].add(named)
        if rule_id in last and each.status is Status.OPEN:
            last[rule_id].add(named)
    return ever, last


def kept_by_machine(judgement: Judgement) -> set[int]:
    """RET-05, by the first offsets of the heads that stayed."""
    return {int(each.anchor) for each in _stand(judgement, "RET-05")}


def hours_by_machine(judgement: Judgement) -> set[int]:
    """OPS-02, of a run: no log by itself knows it."""
    return {int(each.anchor) // HOUR_MS for each in _stand(judgement, "OPS-02")}


def made_of_nothing_by_machine(judgement: Judgement) -> set[tuple[int, int]]:
    """HWM-03, by broker and offset."""
    return {
        (int(each.subject.rpartition(" ")[2]), offset)
        for each in _stand(judgement, "HWM-03")
        for start, end in each.ranges
        for offset in range(start, end)
    }


def _stand(judgement: Judgement, rule_id: str) -> list[Finding]:
    return [
        each for each in judgement.findings if each.rule_id == rule_id and each.status is not Status.WITHDRAWN
    ]


def is_a_matter_of_words(h: History) -> bool:
    """What went on request, and would have been let go by a retention that was declared later: which of two
    causes took it."""
    kinds = [type(each.event) for each in h.told]
    first = kinds.index(OperationAuthorised) if OperationAuthorised in kinds else len(kinds)
    return PolicyDeclared in kinds[first:]
