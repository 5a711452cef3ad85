"""The judge, over all evidence from its first event on: twice, and held against what runs came to one by one.

The two differ in how Spark divides the work, which must not show. A live run goes on from what it carried;
a replay begins at nothing: that both come to the same findings is what makes carried state safe to lose.
Findings about the auditor itself (AUD-*) are of a run, not of a log, and are left out.

Owns the comparison. Refuses to write: no table is made, no run is added.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

from audit_engine.run.history.difference import Difference, difference
from workers.proof import Compared, Step, compared

if TYPE_CHECKING:
    from audit_engine.run.history.spark import History, Replayed

PARTITIONS = "spark.sql.shuffle.partitions"
OTHERWISE_DIVIDED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditProof:
    """`event` is the first, by its place in Kafka, of those that the first difference rests on."""

    findings: int
    logs: int
    again: Compared
    live: Difference
    first: dict[str, Any] | None
    event: str | None


def prove(spark: SparkSession, history: History, live: list[dict[str, Any]]) -> AuditProof:
    terms, as_of_ms = history.live_terms(), history.last_cut.as_of_ms
    replayed = history.replay(terms, from_ms=0, to_ms=as_of_ms)
    usual = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, OTHERWISE_DIVIDED)
    try:
        again = history.replay(terms, from_ms=0, to_ms=as_of_ms)
    finally:
        assert usual is not None
        spark.conf.set(PARTITIONS, usual)
    found = difference(_of_logs(replayed.findings), _of_logs(live))
    first = _first(found)
    return AuditProof(
        findings=len(replayed.findings),
        logs=len(replayed.statements),
        again=compared(_steps(replayed), _steps(again)),
        live=found,
        first=first,
        event=None if first is None else _event(history, first),
    )


def _of_logs(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in findings if not each["rule_id"].startswith("AUD")]


def _steps(replayed: Replayed) -> Iterator[Step]:
    for each in sorted(replayed.findings, key=lambda one: (one["opened_ms"], one["finding_id"])):
        yield Step(f"finding {each['finding_id']} ({each['rule_id']})", json.dumps(each, sort_keys=True))
    for each in replayed.statements:
        yield Step(f"log {each['topic_id']}:{each['partition']}", json.dumps(each, sort_keys=True))


def _first(found: Difference) -> dict[str, Any] | None:
    """The earliest that one has and the other has not, or has otherwise."""
    all_of_them = [*found.only_here, *found.only_there, *(here for here, _ in found.otherwise)]
    return min(map(dict, all_of_them), key=lambda each: (each["opened_ms"], each["finding_id"]), default=None)


def _event(history: History, finding: dict[str, Any]) -> str | None:
    explained, places = history.explain(finding)
    if not explained.is_derived:
        return None
    at = [(each.partition, each.offset, name) for name, found in places.items() for each in found]
    return next((f"{name} at {partition}@{offset}" for partition, offset, name in sorted(at)), None)
