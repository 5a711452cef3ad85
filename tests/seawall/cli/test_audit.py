"""`seawall audit`: what its verbs refuse before anything starts, and when runs are not to be believed."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from audit_engine.run.one_log import canonical
from seawall.cli.audit.run import exit_code
from seawall.cli.audit.verdicts import STALE_MS, statement_text, worries_of
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE, PARTIAL, USAGE
from tests.rules.machine.faults import trimmed_prefix
from tests.seawall.cli.calling import call

NOW_MS = 1_900_000_000_000


class _Unfinished(NamedTuple):
    run: int
    wrote_ms: int


def _run(run: int = 2, logs: int = 5, as_of_ms: int = NOW_MS) -> dict[str, Any]:
    return {"run": run, "as_of_ms": as_of_ms, "counts": {"logs": logs}}


def _worries(runs: list[dict[str, Any]], **own: Any) -> list[str]:
    told: dict[str, Any] = {"unfinished": None, "findings": [], "now_ms": NOW_MS, **own}
    return worries_of(runs, told["unfinished"], told["findings"], told["now_ms"], STALE_MS)


@pytest.mark.parametrize(
    ("runs", "own", "worry"),
    [
        ([], {}, "no run was ever finished"),
        ([_run(as_of_ms=NOW_MS - STALE_MS - 1)], {}, "nothing later was looked at"),
        ([_run(logs=4), _run(1)], {}, "judged 4 logs, the one before 5"),
        ([_run()], {"unfinished": _Unfinished(3, NOW_MS - 3_600_001)}, "run 3 failed half-way"),
        ([_run()], {"findings": [{"rule_id": "AUD-07", "note": "blind"}]}, "AUD-07: blind"),
        ([_run()], {"findings": [{"rule_id": "AUD-04", "note": "changed"}]}, "AUD-04: changed"),
    ],
)
def test_runs_that_are_not_to_be_believed_are_told(
    runs: list[dict[str, Any]], own: dict[str, Any], worry: str
) -> None:
    """None, too old, fewer logs, half-way, blind, tampered with."""
    [told] = _worries(runs, **own)
    assert worry in told


def test_a_run_at_work_and_one_in_order_are_no_worry() -> None:
    """What wrote a minute ago may be finished yet; as many logs as before is as it should be."""
    at_work = _Unfinished(3, NOW_MS - 60_000)
    assert _worries([_run(), _run(1)], unfinished=at_work, findings=[{"rule_id": "RET-05", "note": ""}]) == []


@pytest.mark.parametrize(
    ("verdict", "is_let_be", "code"),
    [
        ("PASS", True, CLEAN),
        ("SUSPECT", True, CLEAN),
        ("INDETERMINATE", True, INDETERMINATE),
        ("VIOLATION", False, FINDINGS),
        ("VIOLATION", True, PARTIAL),
    ],
)
def test_a_suppressed_violation_is_neither_clean_nor_a_page(verdict: str, is_let_be: bool, code: int) -> None:
    """3 where somebody answers for each finding; what cannot be told stays 4."""
    assert exit_code(verdict, is_let_be=is_let_be) == code


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("run", "--rules", "x.toml"), "a rule set is tried out"),
        (("run", "--shadow"), "a rule set is tried out"),
        (("run", "--from", "2026-01-02T00:00Z", "--to", "2026-01-01T00:00Z"), "ends before it begins"),
        (("run", "--from", "2026-01-02T00:00Z", "--again", "1"), "by --from and --to alone"),
        (("run", "--from", "yesterday"), "is no time"),
        (("suppress", "f1", "--reason", "x", "--owner", "bob"), "--until"),
        (("suppress", "f1", "--reason", "x", "--owner", "bob", "--until", "2001-01-01"), "is over"),
        (("suppress", "f1", "--reason", "x", "--owner", "bob", "--until", "soon"), "a day such as"),
        (("suppress", "f1", "--reason", " ", "--owner", "bob", "--until", "2999-01-01"), "line of text"),
        (("ack", "f1"), "--reason"),
    ],
)
def test_what_makes_no_sense_is_refused_before_spark_starts(arguments: tuple[str, ...], why: str) -> None:
    """With what is wrong, and 2."""
    outcome = call("audit", *arguments)

    assert outcome.status == USAGE
    assert why in re.sub(r"[\s│]+", " ", outcome.stderr)


def test_a_statement_says_claim_coverage_evidence_and_hash() -> None:
    """For which period, from which offsets, by how many rules; what is missing and what is let be."""
    judged = trimmed_prefix("none").judged()
    members = json.loads(
        canonical({name: getattr(judged.statement, name) for name in judged.statement.__slots__})
    )
    run = {"run": 7, "cut": {"begin": {"0": 3}, "end": {"0": 9, "1": 4}}}

    text = statement_text({**members, "statement_hash": judged.statement.hash}, run)

    assert text.startswith("orders-0 (T1 in c1): VIOLATION\n  claim        [3000, 10500) violates a rule")
    assert "run 7: of audit events the Kafka offsets 0/[3, 9), 1/[0, 4)" in text
    assert "not covered  before 2025-11-17T00:00:00Z" in text
    assert f"hash         {judged.statement.hash}" in text
    assert judged.statement.open_findings[0] in text
