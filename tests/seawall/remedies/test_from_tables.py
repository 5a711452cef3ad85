"""From a run of the audit to what people do about it, by verbs alone: run, alerts, remedies, holds, page."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from audit_engine.alerts.news import LEADER
from rules.identity import LogId
from rules.machine import Told
from seawall.holds.from_findings import Subject, hold_id
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.audit_engine.alerts.receiver import receiver
from tests.audit_engine.run.evidence import Evidence
from tests.cluster.produce import create_topic
from tests.rules.machine.faults import trimmed_prefix
from tests.seawall.cli.calling import Called, call
from tests.seawall.cli.test_alerts import environ as alert_environ
from tests.seawall.cli.test_backup import PREFIX, expire, tier_of
from tests.seawall.holds.cases import environ_of, record_of
from tests.seawall.remedies.shared import share
from tests.tiering.reader.live import Tiered, tier_partition

LOST = 3_000  # of the fault's history


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """A log whose prefix is gone from the tier, and of which the evidence says that it was lost."""

    topic: str
    tiered: Tiered
    as_of: str

    @property
    def log(self) -> LogId:
        return self.tiered.log


@pytest.fixture
def lost(broker: LocalCluster, bucket: LocalBucket, spark: SparkSession, tmp_path: Path) -> Lost:
    topic = f"lost-{uuid.uuid4().hex[:8]}"
    create_topic(broker, topic)
    kafka.produce(broker.bootstrap, topic, (f"{number:020d}".encode() for number in range(LOST + 1_500)))
    tiered = tier_partition(broker, bucket, topic)
    assert tiered.end >= LOST
    expire(tiered, broker, bucket, 2)
    history = trimmed_prefix("kip405")
    words = {"c1": tiered.log.cluster_id, "T1": tiered.log.topic_id, "orders": topic}
    Evidence(spark, tmp_path, at_ms=history.now_ms).add(
        [about(told, tiered.log, words) for told in history.told]
    )
    as_of = datetime.fromtimestamp(history.now_ms // 1000 + 1, tz=timezone.utc)
    return Lost(topic=topic, tiered=tiered, as_of=as_of.isoformat())


def about(told: Told, log: LogId, words: Mapping[str, str]) -> Told:
    """The same of another log."""
    changed: dict[str, Any] = {}
    for each in fields(told.event) if told.event is not None else ():
        value = getattr(told.event, each.name)
        if isinstance(value, LogId):
            changed[each.name] = log
        elif isinstance(value, str) and value in words:
            changed[each.name] = words[value]
    return told if told.event is None else replace(told, event=replace(told.event, **changed))


@pytest.mark.long
@pytest.mark.timeout(1200)  # a run of the audit with its gate, and five readings of its tables
def test_a_fault_is_found_told_held_restored_and_shown(
    lost: Lost,
    broker: LocalCluster,
    bucket: LocalBucket,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run tells a receiver who led; remediate, which finds it in the tables, shows the restore's plan and
    changes nothing, and with --confirm holds the log and puts the prefix back; the hold is the one that
    findings ask for; nobody is told twice; the page has the commands."""
    share(spark, tmp_path, monkeypatch)
    with receiver() as receiving:
        around = environ_of(broker, bucket, PREFIX, str(tmp_path)) | {
            "SEAWALL_AUDIT__TABLES": str(tmp_path / "tables"),
            **alert_environ(tmp_path / "alerts", receiving.url),
        }

        def seawall(*arguments: str) -> Called:
            return call(*arguments, environ=around)

        ran = seawall("audit", "run", "--as-of", lost.as_of, "--no-holds")
        assert ran.status == 1, ran.stderr
        delivered = seawall("alerts", "deliver")
        assert delivered.status == 0, delivered.stderr
        everything = [each.json["data"] for each in receiving.taken]
    # Nobody says a word between the history's last event and the run: that is told, too, and rightly.
    silent = {
        each["rule_id"] for one in everything for each in one["findings"] if one["severity"] == "warning"
    }
    assert silent == {"AUD-03"}
    [told] = [one for one in everything if one["severity"] != "warning"]
    [root] = [each for each in told["findings"] if each["finding_id"] == told["incident"]]
    assert (root["rule_id"], root["ranges"], root[LEADER]) == ("START-02", [[0, LOST]], 1)
    assert "broker 1 led as of this run" in root["not_stopped_by_hold"]
    finding_id = root["finding_id"]

    shown = seawall("remediate", finding_id[:12])
    assert shown.status == 1, shown.stderr
    assert f"restore [0, {LOST}) of {lost.topic}-0 to target tier" in shown.stdout
    before = record_of(broker, lost.topic)
    assert before is not None
    assert (before.holds, before.log_start > 0) == ((), True)
    done = seawall("remediate", finding_id[:12], "--confirm", "--json")

    acts = {each["act"]: each["is_done"] for each in json.loads(done.stdout)["steps"]}
    assert (done.status, acts["hold"], acts["restore"]) == (0, True, True), done.stdout + done.stderr
    assert "can be read from the tier again" in done.stderr
    after = record_of(broker, lost.topic)
    assert after is not None
    assert [(each.hold_id, each.finding_id) for each in after.holds] == [
        (hold_id(finding_id, Subject(*lost.log)), finding_id)
    ]
    assert tier_of(lost.tiered, broker).start == 0

    held = seawall("hold", "findings")
    assert held.status == 0, held.stderr
    again = record_of(broker, lost.topic)
    assert again is not None
    assert [each.hold_id for each in again.holds] == [each.hold_id for each in after.holds]
    page = tmp_path / "page.html"
    assert seawall("audit", "report", "--out", str(page)).status == 1
    for command in ("seawall remediate", "seawall backup plan --finding"):
        assert f"{command} {finding_id}" in page.read_text()
