"""A partition that moves: to another broker, and there to another log dir. Kafka's own tool moves it."""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path

import pytest

from seawall.jvm.classpath import classpath
from seawall.jvm.java import find_java
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.jvm_options import short_lived
from seawall.local.s3 import segment_store
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.cluster.produce import QUICK_HOUSEKEEPING
from tests.faults.agents import agents_beside
from tests.faults.scrub import scrub, tiered_records
from tests.faults.test_whole_system import closed_ends, replayed, settings_of
from tiering.segments.coverage import Coverage, coverage
from tiering.segments.records import LogId, LogRecord
from tiering.segments.table import ReferenceTable
from tiering.store.keys import KeyLayout

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
DEADLINE_S = 90.0
SEGMENT_BYTES = 64 * 1024
STEP = 400  # records between two moves
VALUE_BYTES = 600


def move(cluster: LocalCluster, topic: str, node_id: int, log_dir: Path, folder: Path) -> None:
    """Have this node, and no other, hold partition 0, in this log dir; returns when it does."""
    wanted = {"topic": topic, "partition": 0, "replicas": [node_id], "log_dirs": [str(log_dir)]}
    plan = folder / f"to-{node_id}-{log_dir.name}.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
    command = [str(find_java().path), *short_lived(), "-cp", classpath("broker"), TOOL]
    command += ["--bootstrap-server", cluster.bootstrap, "--reassignment-json-file", str(plan)]

    def call(verb: str) -> str:
        done = subprocess.run([*command, verb], capture_output=True, text=True, timeout=60, check=False)
        return done.stdout + done.stderr

    said = call("--execute")
    assert "Successfully started" in said, said
    moved = log_dir / f"{topic}-0"
    wait_until(
        lambda: (moved / "partition.metadata").exists() and _is_alone(cluster, topic, moved),
        name=topic,
        wanted=f"partition 0 in {moved}",
        deadline_s=DEADLINE_S,
    )
    call("--verify")  # takes the throttle away, as an operator would


def _is_alone(cluster: LocalCluster, topic: str, moved: Path) -> bool:
    """Whether no other live, or moving, directory of the partition is left anywhere."""
    found = [
        path
        for node_id in cluster.nodes
        for log_dir in cluster.log_dirs(node_id)
        for path in (*log_dir.glob(f"{topic}-0"), *log_dir.glob(f"{topic}-0.*-future"))
    ]
    return found == [moved]


def _record(table: ReferenceTable, log: LogId) -> LogRecord:
    view = table.view(log)
    assert view is not None
    assert view.record is not None
    return view.record


@pytest.mark.jvm
def test_a_log_is_copied_on_wherever_it_moves(bucket: LocalBucket, tmp_path: Path) -> None:
    """On one broker, on another, in another log dir of that: each time the agent beside the leader goes on
    from the frontier, the log stays one log, no gap is recorded, and every record reads back once."""
    topic, prefix = f"moves-{uuid.uuid4().hex[:8]}", f"moves-{uuid.uuid4().hex[:8]}"
    values: list[bytes] = []
    with LocalCluster(
        tmp_path / "kafka", nodes=3, log_dirs_per_node=2, properties=QUICK_HOUSEKEEPING
    ) as cluster:
        produce.create_topic(cluster, topic, segment_bytes=SEGMENT_BYTES)
        settings = settings_of(cluster, bucket.address.endpoint_url, bucket.name, prefix, topic)
        with agents_beside(cluster, tmp_path, settings, bucket.address):

            def more() -> None:
                """Some records, until all that is closed of them is in the tier."""
                added = [
                    b"%08d" % number + b"." * VALUE_BYTES for number in range(len(values), len(values) + STEP)
                ]
                assert kafka.produce(cluster.bootstrap, topic, added) == STEP
                values.extend(added)
                wait_until(
                    lambda: len(values) - reached() < STEP / 2,
                    name="the agents",
                    wanted=f"most of {len(values)} records in the tier",
                    deadline_s=DEADLINE_S,
                )

            def reached() -> int:
                ends = closed_ends(cluster, topic)
                table = replayed(cluster)
                found = [coverage(view) for log in ends if (view := table.view(log)) is not None]
                return max((each.frontier.offset for each in found if isinstance(each, Coverage)), default=0)

            first = kafka.leaders(cluster.bootstrap, topic)[0]
            other = next(node_id for node_id in cluster.nodes if node_id != first)
            more()
            move(cluster, topic, other, cluster.log_dirs(other)[0], tmp_path)
            more()
            move(cluster, topic, other, cluster.log_dirs(other)[1], tmp_path)
            more()

        table, store = replayed(cluster), segment_store(bucket.address)
    [log] = [each for each in table.logs() if _record(table, each).topic == topic]
    read = [record.value for record in tiered_records(table, store, log)]
    found = scrub(table, store, KeyLayout(prefix), topic_id=log.topic_id)

    assert found.is_clean, found
    assert _record(table, log).gaps == ()
    assert read == values[: len(read)]
    assert len(read) > 2.5 * STEP
