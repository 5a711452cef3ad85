"""The topic of metadata on a real broker, executed again, and the table on a disk held against it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rules.identity import LogId
from seawall.agent.snapshots import FOLDER
from seawall.cli.replay.said import as_json, exit_code
from seawall.local.broker import LocalCluster
from seawall.replay.segments import SegmentsProof, prove
from tests.tiering.segments.strategies import log_record, segment
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.kafka import KafkaAppender, SegmentsTopic, ensure_topic, replay
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import SegmentState
from tiering.segments.snapshot import save
from workers.proof import Divergence, Equal, Step

COPIES = 3


@pytest.fixture(scope="module")
def config(broker: LocalCluster) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap}


@pytest.fixture(scope="module")
def topic(config: dict[str, str]) -> SegmentsTopic:
    return ensure_topic(config, name="replayed-segments", partitions=2)


@pytest.fixture(scope="module")
def logs(config: dict[str, str], topic: SegmentsTopic) -> list[LogId]:
    """Four logs, each claimed and with copies."""
    named = [LogId(topic.cluster_id, "CgkTzsXgRlOwPTRJHnL2yg", number) for number in range(4)]
    with KafkaAppender(config, topic) as appender:
        for log in named:
            appender.append(log, log_key(log), encode_log(log_record(1, log=log)))
            for number in range(COPIES):
                finished = segment(number, 10 * number, 10 * number + 10, log=log)
                for each in (replace(finished, state=SegmentState.COPY_STARTED), finished):
                    appender.append(log, segment_key(log, each.segment_id), encode_segment(each))
    return named


@pytest.fixture
def disk(config: dict[str, str], topic: SegmentsTopic, logs: list[LogId], tmp_path: Path) -> Path:
    """An agent's folder, with its table as the topic makes it."""
    for table in replay(config, topic).partitions():
        save(tmp_path / FOLDER, table, at_end_ms=1)
    return tmp_path


def _codes(found: SegmentsProof) -> int:
    return exit_code(found.again, found.in_bulk, is_live_known=bool(found.live))


def test_the_topic_the_bulk_and_the_disk_come_to_the_same(
    config: dict[str, str], topic: SegmentsTopic, logs: list[LogId], disk: Path
) -> None:
    """A step for each record; each log equal on the disk; the same hash whenever it is asked."""
    found, again = prove(config, topic, disk), prove(config, topic, disk)

    assert isinstance(found.again, Equal)
    assert isinstance(found.in_bulk, Equal)
    assert (found.records, found.logs) == (len(logs) * (1 + 2 * COPIES), len(logs))
    assert (found.again.steps, found.again.hash) == (found.records, as_json(again.again)["hash"])
    assert sum(each.equal for each in found.live.values()) == len(logs)
    assert all(not each.differs and not each.gone_past for each in found.live.values())
    assert _codes(found) == 0


def test_a_disk_that_holds_something_else_is_named(
    config: dict[str, str], topic: SegmentsTopic, logs: list[LogId], disk: Path
) -> None:
    """A copy that is in the agent's table and not in the topic: its log, at its place."""
    tables = replay(config, topic)
    table = tables.of(logs[0])
    assert table is not None
    more = segment(77, 30, 40, log=logs[0])
    table.apply(table.position, segment_key(logs[0], more.segment_id), encode_segment(more))
    table.state.position -= 1  # as if it had been among what the topic has
    save(disk / FOLDER, table, at_end_ms=1)

    found = prove(config, topic, disk)

    [differs] = found.live[table.partition].differs
    assert (differs.log, differs.rebuilt) == (logs[0], "none")
    assert differs.key == segment_key(logs[0], more.segment_id).decode()


def test_without_a_table_on_this_host_it_is_not_called_equal(
    config: dict[str, str], topic: SegmentsTopic, logs: list[LogId], tmp_path: Path
) -> None:
    """The executions are compared, and the exit code says that this was not all that was asked."""
    found = prove(config, topic, tmp_path)

    assert found.live == {}
    assert _codes(found) == 3


def test_a_divergence_outranks_and_nothing_to_compare_is_not_equal() -> None:
    """1 for what diverges, 4 for an empty log, 0 where nobody asked for what lives here."""
    diverges = Divergence(number=0, first=Step("0@1", "a"), second=None)
    some, none = Equal(steps=1, hash="h"), Equal(steps=0, hash="h")

    assert exit_code(some, diverges, is_live_known=False) == 1
    assert exit_code(none, none) == 4
    assert exit_code(some, none) == 0
    assert as_json(diverges) == {"equal": False, "at": "0@1", "step": 0, "first": "a", "second": None}
