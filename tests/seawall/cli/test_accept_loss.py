"""`seawall audit accept-loss`: from a finding in the tables to an event, and what a run makes of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from audit_engine.run.reading.spark import Verdicts
from audit_engine.topic.kafka import ensure_audit_topic
from audit_engine.wire import Envelope, decode
from rules.events import LossAccepted
from rules.identity import LogId
from rules.machine import Speaker, Told
from seawall.audit.loss import NoLoss, OtherCluster, cluster_of, events_of, incident_of
from seawall.events.kafka import hear
from seawall.local.broker import LocalCluster
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_run import beats, moved
from tests.rules.machine.faults import retention_shrunk
from tests.rules.machine.histories import MINUTE_MS
from tests.seawall.cli.calling import Called, call

WHO = ("--principal", "alice", "--reason", "it was test data")


def finding(rule_id: str = "START-02", **own: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "finding_id": "f1",
        "rule_id": rule_id,
        "subject": "c1/T1/0",
        "ranges": [[0, 1000], [2000, 3000]],
        "status": "open",
        "incident": "f1",
    }
    return told | own


def said(found: dict[str, Any], logs: Sequence[LogId]) -> list[LossAccepted]:
    names = dict.fromkeys(logs, "orders")
    return list(events_of(found, names, principal="alice", reason="why", now_ms=7))


def test_an_event_has_all_of_the_finding_and_its_log_alone() -> None:
    """Of a topic's finding, each of its logs; of what has no range, an empty one."""
    logs = [LogId("c1", "T1", 0), LogId("c1", "T1", 1), LogId("c1", "T2", 0)]

    [one] = said(finding(), logs)
    both = said(finding("OPS-01", subject="c1/T1", ranges=[]), logs)

    assert (one.log, one.start_offset, one.end_offset, one.finding_id) == (logs[0], 0, 3000, "f1")
    assert [(each.log, each.start_offset, each.end_offset) for each in both] == [
        (logs[0], 0, 0),
        (logs[1], 0, 0),
    ]
    assert said(finding(subject="c1/T1/0/replica 2"), logs)[0].log == logs[0]


def test_what_is_no_loss_cannot_be_taken_as_one() -> None:
    """A setting that is wrong, evidence that never came; of an incident what is lost and open, alone."""
    for rule_id in ("RET-03", "START-04", "AUD-01", "OPS-02"):
        with pytest.raises(NoLoss):
            cluster_of(finding(rule_id))
    others = [
        finding("RET-01", finding_id="f2"),
        finding("RET-01", finding_id="f3", status="accepted"),
        finding("RET-03", finding_id="f4"),
        finding("START-02", finding_id="f5", incident="f5"),
    ]
    assert [each["finding_id"] for each in incident_of(finding(), [finding(), *others])] == ["f1", "f2"]


@pytest.mark.long  # two runs
@pytest.mark.timeout(3600)
def test_what_is_accepted_is_closed_by_the_next_run_and_nothing_else(
    spark: SparkSession, broker: LocalCluster, tmp_path: Path
) -> None:
    """From the finding in the tables to the topic; the run that hears it closes that finding. Nothing is said
    before --confirm, nor of another cluster's."""
    ensure_audit_topic({"bootstrap.servers": broker.bootstrap})
    h = retention_shrunk("none")
    own = beats([moved(each, broker.cluster_id) for each in h.told], broker.cluster_id, h.now_ms)
    evidence = Evidence(spark, tmp_path)
    evidence.add([*own, *(moved(each, "elsewhere") for each in h.told)])
    evidence.audit().next(h.now_ms)
    verdicts = Verdicts(spark, evidence.root)
    before = {each["finding_id"]: each for each in verdicts.findings()}
    [root] = [each for each in before.values() if _is(each, "START-02", broker.cluster_id)]
    [other] = [each for each in before.values() if _is(each, "START-02", "elsewhere")]
    environ = {
        "SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap,
        "SEAWALL_AUDIT__TABLES": evidence.root,
        "XDG_STATE_HOME": str(tmp_path),
    }

    def accept(found: dict[str, Any], *more: str) -> Called:
        return call("audit", "accept-loss", found["finding_id"], *WHO, "--json", *more, environ=environ)

    shown, elsewhere, accepted = accept(root), accept(other, "--confirm"), accept(root, "--confirm")
    heard = [each for each in _heard(broker) if each.event.finding_id in before]  # type: ignore[union-attr]
    at_ms = h.now_ms + MINUTE_MS
    evidence.add([_told(each, at_ms) for each in heard])
    evidence.audit().next(at_ms)

    assert (shown.status, elsewhere.status, accepted.status) == (0, OtherCluster.exit_code, 0)
    assert "nothing was accepted" in shown.stderr
    [event] = [each.event for each in heard]
    assert isinstance(event, LossAccepted)
    assert event.event_id == json.loads(accepted.stdout)["accepted"][0]["event_id"]
    assert (event.finding_id, event.principal) == (root["finding_id"], "alice")
    after = {each["finding_id"]: each["status"] for each in verdicts.findings()}
    assert {each for each in before if after[each] != before[each]["status"]} == {root["finding_id"]}
    assert after[root["finding_id"]] == "accepted"


def _is(found: dict[str, Any], rule_id: str, cluster_id: str) -> bool:
    return found["rule_id"] == rule_id and str(found["subject"]).startswith(f"{cluster_id}/")


def _heard(broker: LocalCluster) -> list[Envelope]:
    every = (decode(each.value) for each in hear({"bootstrap.servers": broker.bootstrap}, since_ms=0))
    return [each for each in every if isinstance(each.event, LossAccepted)]


def _told(envelope: Envelope, at_ms: int) -> Told:
    """As if it had been said then."""
    event = envelope.event
    assert isinstance(event, LossAccepted)
    return Told(
        event=replace(event, occurred_at_ms=at_ms),
        speaker=Speaker(*envelope.emitter),
        seq=envelope.emitter_seq,
        log_seq=envelope.log_seq,
        observed_at_ms=at_ms,
    )
