"""`seawall remediate` puts a lost prefix back into the tier, given an alert: on a real broker and bucket."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from seawall.holds.from_findings import Subject, hold_id
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.cluster.produce import create_topic
from tests.seawall.cli.calling import Called, call
from tests.seawall.cli.test_backup import PREFIX, expire, tier_of
from tests.seawall.holds.cases import environ_of, finding, record_of
from tests.tiering.reader.live import tier_partition

LOST = 1_500


def test_a_lost_prefix_is_shown_as_a_plan_and_then_put_back(
    broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """Without --confirm the plan, and nothing is changed; with it the log is held, the tier begins where it
    did, the signed report is kept; called again, nothing is left to do."""
    topic = f"remedy-{uuid.uuid4().hex[:8]}"
    create_topic(broker, topic)
    kafka.produce(broker.bootstrap, topic, (f"{number:020d}".encode() for number in range(2 * LOST)))
    tiered = tier_partition(broker, bucket, topic)
    assert tiered.end >= LOST
    start = expire(tiered, broker, bucket, 2)
    told = finding(tiered.log, recoverable_offsets=LOST, lost_offsets=0, ranges=[[0, LOST]])
    alert = tmp_path / "alert.json"
    alert.write_text(json.dumps({"data": {"findings": [{**told, "severity": "critical", "leader_id": 1}]}}))
    around = environ_of(broker, bucket, PREFIX, str(tmp_path))

    def remediate(*more: str) -> Called:
        return call("remediate", told["finding_id"], "--from-file", str(alert), *more, environ=around)

    shown = remediate()
    assert shown.status == 1, shown.stderr
    assert f"restore [0, {LOST}) of {topic}-0 to target tier" in shown.stdout
    assert "--target log_directory" in shown.stdout
    before = record_of(broker, topic)
    assert before is not None
    assert (before.holds, tier_of(tiered, broker).start) == ((), start)
    done = remediate("--confirm", "--json")

    assert (done.status, left(done)) == (0, []), done.stderr
    assert f"[0, {LOST}) can be read from the tier again" in done.stderr
    assert tier_of(tiered, broker).start == 0
    after = record_of(broker, topic)
    assert after is not None
    [hold] = after.holds
    assert hold.hold_id == hold_id(told["incident"], Subject(*tiered.log))
    [report] = tmp_path.rglob("restore-*.json")
    assert call("backup", "report", str(report), environ=around).status == 0
    again = remediate("--confirm", "--json")
    assert (again.status, left(again), again.stderr) == (0, [], "")


def left(ran: Called) -> list[Any]:
    return [each for each in json.loads(ran.stdout)["steps"] if not each["is_done"]]
