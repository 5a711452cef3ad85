"""`seawall remediate` puts a lost prefix back into the tier, given an alert, and tells a person what to do
about files that the broker has not removed yet: on a real broker and bucket."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import pytest

from rules.identity import LogId
from seawall.holds.from_findings import Subject, hold_id
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.waiting import wait_until
from tests.backup.logdir.test_on_a_broker import STARTS_S, by_a_corrupted_checkpoint
from tests.backup.lost_logs import compare, consumed, earliest, write_all_kinds
from tests.cluster.cases_logs import partition_folder
from tests.cluster.disks import put_start
from tests.cluster.produce import create_topic
from tests.faults.clean import assert_clean
from tests.seawall.cli.calling import Called, call
from tests.seawall.cli.test_backup import PREFIX, expire, tier_of
from tests.seawall.holds.cases import environ_of, finding, record_of
from tests.tiering.reader.live import tier_partition
from tiering.log.identity_files import read_partition_metadata

LOST = 1_500
DELAY_MS = 3_600_000  # of file.delete.delay.ms: longer than any machine is slow
DEADLINE_S = 60.0


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
    assert_clean(broker, bucket, topic, prefix=PREFIX)


@pytest.mark.long
def test_files_that_are_renamed_only_come_back_by_the_steps_that_are_told(
    broker: LocalCluster, tmp_path: Path
) -> None:
    """A log that nothing was copied of: the steps for a person, taken word by word while the files still lie
    there, bring back every record, and the minutes left are those of the broker's own delay."""
    topic = f"renamed-{uuid.uuid4().hex[:8]}"
    create_topic(broker, topic, config={"file.delete.delay.ms": str(DELAY_MS)})
    write_all_kinds(broker, topic)
    whole, folder = consumed(broker, topic), partition_folder(broker, topic, 0, 1)
    by_a_corrupted_checkpoint(broker, topic)
    wait_until(
        lambda: (folder / f"{0:020d}.log.deleted").exists(),
        name=topic,
        wanted="renamed",
        deadline_s=DEADLINE_S,
    )
    topic_id = read_partition_metadata((folder / "partition.metadata").read_bytes())
    log = LogId(broker.cluster_id, topic_id, 0)
    told = finding(log, ranges=[[0, 700]], lost_offsets=700, opened_ms=time.time_ns() // 1_000_000)
    alert = tmp_path / "finding.json"
    alert.write_text(json.dumps(told))
    around = {"XDG_STATE_HOME": str(tmp_path), "SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap}

    ran = call("remediate", told["finding_id"], "--from-file", str(alert), "--json", environ=around)
    [step] = [each for each in left(ran) if each["act"] == "stop"]
    broker.stop(1)
    subprocess.run(step["commands"][0], shell=True, check=True, cwd=folder.parent)
    put_start(folder.parent, topic, min(int(each.stem) for each in folder.glob("*.log")))
    broker.restart(1, deadline_s=STARTS_S)

    assert "Stop brokers 1 together" in step["says"]
    assert "set its entry in log-start-offset-checkpoint to the first file's base" in step["says"]
    assert 0 < step["minutes_left"] <= (DELAY_MS + 1_000) / 60_000
    assert earliest(broker, topic) == 0
    compare(consumed(broker, topic), whole)


def left(ran: Called) -> list[Any]:
    return [each for each in json.loads(ran.stdout)["steps"] if not each["is_done"]]
