"""A replay whose process is killed with SIGKILL, again and again, each time a little further on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backup.plan.file import write_plan
from backup.topic.kafka import KafkaProgress
from backup.topic.progress import map_of, progress_key
from rules.events import RestoreTarget
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.backup.lost_logs import consumed, pieces_of, plan_for, write_all_kinds
from tests.backup.topic.test_on_a_broker import same, target
from tests.cluster import produce
from tests.faults.clean import assert_clean
from tests.tiering.reader.live import PREFIX, tier_partition

KILLS = int(os.environ.get("SEAWALL_TEST_KILLS", "8"))
STEPS_BETWEEN = 13  # not a divisor of a transaction's steps: each of them has its turn
DEADLINE_S = 120.0


@pytest.mark.long
def test_each_record_is_there_once(broker: LocalCluster, bucket: LocalBucket, tmp_path: Path) -> None:
    """Every process begins where the one before was killed; the last one comes to the end."""
    topic, into = "killed-source", "killed-target"
    produce.create_topic(broker, topic)
    write_all_kinds(broker, topic)
    tiered = tier_partition(broker, bucket, topic)
    wanted = consumed(broker, topic, isolation="read_committed", end=tiered.end)
    plan = plan_for(pieces_of(tiered.segments), RestoreTarget.TOPIC)
    write_plan(tmp_path / "plan", plan)
    topic_id = target(broker, into)
    at = bucket.address
    environ = {
        **os.environ,
        "AWS_ACCESS_KEY_ID": at.access_key_id,
        "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
    }
    place = (broker.bootstrap, at.endpoint_url, at.bucket, at.region, str(tmp_path / "plan"), into, topic_id)

    killed = 0
    for number in range(KILLS + 1):
        kill_at = 0 if number == KILLS else 3 + STEPS_BETWEEN * number
        command = [sys.executable, "-m", "tests.backup.topic.replay_alone", *place, str(kill_at)]
        status = subprocess.run(command, env=environ, timeout=DEADLINE_S, check=False).returncode
        assert status in (0, -signal.SIGKILL)
        killed += status != 0

    assert killed >= min(KILLS, 4)
    steps = KafkaProgress({"bootstrap.servers": broker.bootstrap}).steps(progress_key(plan.hash, topic_id, 0))
    same(consumed(broker, into, isolation="read_committed"), wanted, map_of(steps, 0))
    assert_clean(broker, bucket, topic, prefix=PREFIX)
