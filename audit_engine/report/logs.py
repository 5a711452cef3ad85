"""Every log as columns, for the page's table: ten thousand of them are less than a megabyte.

A text that occurs in many logs stands once, in `texts`, and the logs have its number. -1 is: not known.

Owns the columns' form; `assets/page.js` reads it. Invariant: rows are in order, the worst first.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from audit_engine.report.incidents import is_open
from audit_engine.report.markup import shown
from audit_engine.report.repair import look
from audit_engine.report.values import WORST_FIRST, Gathered, Row, log_of, subject_of
from audit_engine.report.words import DEPLOYMENT_WORDS, title
from rules.identity import LogId

REASONS_MAX = 6  # of one log
NEW = -1  # as the verdict before


class _Texts:
    """Numbers texts as they come."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._numbers.setdefault(shown(text), len(self._numbers))

    @property
    def all(self) -> list[str]:
        return list(self._numbers)


def columns(gathered: Gathered) -> dict[str, Any]:
    """By name, a list with a value for each log."""
    texts = _Texts()
    findings = {each["finding_id"]: each for each in gathered.findings}
    went = _went(gathered.findings)
    found: dict[str, list[Any]] = {}
    for each in worst_first(gathered.statements, went):
        log = log_of(each)
        lost, recoverable = went.get(log, (0, 0))
        before = None if gathered.before is None else gathered.before.get(log)
        row = {
            "topic": texts(each["topic"]),
            "partition": each["partition"],
            "verdict": WORST_FIRST.index(each["verdict"]),
            "before": NEW if before is None else WORST_FIRST.index(before),
            "start": _known(each["log_start"]),
            "end": _known(each["high_watermark"]),
            "tiered": each["tiered_offsets"],
            "lost": lost,
            "recoverable": recoverable,
            "events": each["events"],
            "since": _known(each["not_before_ms"]),
            "sort": texts(DEPLOYMENT_WORDS.get(str(each["deployment"]), str(each["deployment"]))),
            "replicas": texts(", ".join(f"{broker} {how}" for broker, how in each["replicas"])),
            "cluster": texts(each["cluster_id"]),
            "rules": [texts(one) for one in _rules(each, findings)],
            "missing": [texts(one) for one in each["missing"][:REASONS_MAX]],
            "suspect": [texts(f"{one} {title(one)}") for one in each["suspect"][:REASONS_MAX]],
            "suppressed": len(each["suppressed_findings"]),
            "hash": each["statement_hash"][:16],
            "odd": _odd_command(each),
        }
        for name, value in row.items():
            found.setdefault(name, []).append(value)
    return {
        "verdicts": list(WORST_FIRST),
        "texts": texts.all,
        "has_before": gathered.before is not None,
        "rows": len(gathered.statements),
        **found,
    }


def worst_first(statements: Iterable[Row], went: dict[LogId, tuple[int, int]]) -> list[Row]:
    """By verdict, then by what is lost, by how much is open, by name."""
    return sorted(
        statements,
        key=lambda each: (
            WORST_FIRST.index(each["verdict"]),
            *(-size for size in went.get(log_of(each), (0, 0))),
            -len(each["open_findings"]),
            -len(each["missing"]),
            each["topic"],
            each["partition"],
            each["topic_id"],
        ),
    )


def _went(findings: Iterable[Row]) -> dict[LogId, tuple[int, int]]:
    """Of each log, offsets without a known copy and recoverable ones, by its largest critical finding."""
    found: dict[LogId, tuple[int, int]] = {}
    for each in findings:
        log = subject_of(each["subject"]).log
        if log is not None and is_open(each) and each["severity"] == "C" and each["suppressed_by"] is None:
            told = (each["lost_offsets"], each["recoverable_offsets"])
            found[log] = max(told, found.get(log, (0, 0)))
    return found


def _rules(statement: Row, findings: dict[str, Row]) -> list[str]:
    """What is open, each rule once."""
    ids = (findings[each]["rule_id"] for each in statement["open_findings"] if each in findings)
    return [f"{each} {title(each)}" for each in dict.fromkeys(sorted(ids))][:REASONS_MAX]


def _odd_command(statement: Row) -> str:
    """The command, where its words are not the plain ones that the page puts together by itself."""
    name = f"{statement['topic']}:{statement['partition']}"
    return "" if shlex.quote(name) == name else shown(look(statement["topic"], statement["partition"]))


def _known(value: int | None) -> int:
    return -1 if value is None else int(value)
