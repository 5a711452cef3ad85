"""A live agent whose log dirs the kernel will not watch: segments that close are found by the rescan."""

from __future__ import annotations

import re
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.kafka import produce
from seawall.local.waiting import wait_until
from tests.cluster.produce import create_topic
from tests.faults.agents import agent_beside
from tests.faults.clean import assert_clean
from tests.faults.test_whole_system import replayed, settings_of
from tiering.segments.coverage import Coverage, coverage

DEADLINE_S = 60.0
SEGMENT_BYTES = 64 * 1024
LIMIT = "/proc/sys/user/max_inotify_watches"  # of a user namespace: of nobody else on this host
WITHOUT_WATCHES = ("unshare", "--user", "--map-root-user", "sh", "-c", f'echo 0 > {LIMIT} && exec "$@"', "sh")


def _refusal() -> str:
    """Why no process can be given a limit of its own here; empty if one can."""
    if shutil.which("unshare") is None:
        return "there is no unshare"
    tried = subprocess.run([*WITHOUT_WATCHES, "true"], capture_output=True, text=True, check=False)
    return tried.stderr.strip() if tried.returncode else ""


def _frontier(broker: LocalCluster, topic: str) -> int:
    table = replayed(broker)
    views = [view for log in table.logs() if (view := table.view(log)) is not None]
    found = [coverage(view) for view in views if view.record is not None and view.record.topic == topic]
    return max((each.frontier.offset for each in found if isinstance(each, Coverage)), default=0)


def test_without_a_single_file_event_the_rescan_finds_what_closes(
    broker: LocalCluster, bucket: LocalBucket, tmp_path: Path
) -> None:
    """Every watch is refused, as where fs.inotify.max_user_watches is used up: the agent says so, and copies
    what closes after it had nothing left to do."""
    if why := _refusal():
        pytest.skip(f"a limit on watches for one process: {why}")
    topic = f"unwatched-{uuid.uuid4().hex[:8]}"
    create_topic(broker, topic, segment_bytes=SEGMENT_BYTES)
    settings = settings_of(broker, bucket.address.endpoint_url, bucket.name, topic, topic)
    with agent_beside(broker, tmp_path, settings, bucket.address, wrapped_in=WITHOUT_WATCHES) as agent:
        wait_until(
            lambda: (
                re.search(
                    rf'state="up_to_date",topic="{topic}",topic_id="[^"]+"}} 1.0',
                    agent.page("metrics").decode(),
                )
                is not None
            ),
            name="the agent",
            wanted="the empty log to be known",
            deadline_s=DEADLINE_S,
        )

        produce(broker.bootstrap, topic, (b"%06d" % number * 100 for number in range(400)))

        wait_until(
            lambda: _frontier(broker, topic) > 300,
            name="the agent",
            wanted="the closed segments to be copied",
            deadline_s=DEADLINE_S,
        )
        assert agent.process.stop(grace_s=30.0), "it ended by itself"
        said = agent.process.log.read_text()
    assert '"event": "not_watched"' in said
    assert "fs.inotify.max_user_watches is used up" in said
    assert_clean(broker, bucket, topic, prefix=topic)
