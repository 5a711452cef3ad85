"""What outlives the observer: its memory, and the events that were not out."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from audit_engine.observers.disk.differ import BASELINE_EVERY_MS, WATERMARK_EVERY_MS
from audit_engine.observers.disk.memory import FILE_NAME
from rules.events import (
    Event,
    EvidenceGap,
    HighWatermark,
    LogBaseline,
    LogStartAdvanced,
    ReplicaStarted,
    SegmentClosed,
    SegmentDeletedLocal,
)
from tests.audit_engine.observers.disk.test_model import Watched
from tiering.cluster.host import HostSurvey


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    found = Watched(tmp_path)
    for count in (5, 6, 7):
        found.disk.roll(count)
    found.look()
    found.said.clear()
    return found


class Killed(Exception):
    """The process ends here."""


def test_a_deletion_while_nobody_looked_is_said_with_what_was_known(watched: Watched) -> None:
    """Size and newest time are from while the segment lived; the change lies between the two looks."""
    seen_ms = watched.now_ms
    watched.observer.close()
    watched.disk.expire(1)
    watched.disk.purge()
    watched.now_ms += 3_600_000
    watched.restart()
    watched.look()
    watched.look()

    [deleted] = [each for each in watched.said if isinstance(each, SegmentDeletedLocal)]

    assert (deleted.base_offset, deleted.end_offset, deleted.size_bytes) == (0, 5, 50)
    assert deleted.max_timestamp_ms == 1_000_000
    assert deleted.not_before_ms == seen_ms
    assert deleted.occurred_at_ms == watched.now_ms


def test_what_a_killed_process_had_not_emitted_is_emitted_by_the_next_unchanged(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same events with the same ids, and each of them once beside those that were out."""
    watched.disk.expire(2)
    watched.look()
    out: list[Event] = []

    def emit_many(events: Sequence[Event]) -> None:
        out.extend(events)
        raise Killed

    monkeypatch.setattr(watched, "emit_many", emit_many)
    with pytest.raises(Killed):
        watched.look()
    monkeypatch.undo()
    watched.restart()
    watched.look()

    ids = [each.event_id for each in watched.said if isinstance(each, SegmentDeletedLocal)]
    assert len(ids) == 2
    assert out
    assert watched.said[: len(out)] == out, "repeated as it was, since nobody knows that it was out"


@pytest.mark.parametrize("damage", ["scribbled", "a bit", "a life is missing"])
def test_a_damaged_memory_is_set_aside_and_said(watched: Watched, damage: str) -> None:
    """An evidence gap, then whole states: nothing is compared with what cannot be relied on."""
    watched.observer.close()
    path = watched.root / "agent" / FILE_NAME
    held = path.read_bytes()
    at = held.index(b'"pieces":[[0,5,50') + len(b'"pieces":[[0,')
    if damage == "a life is missing":
        with sqlite3.connect(path) as file:
            assert file.execute("DELETE FROM kept WHERE key <> 'look'").rowcount == 1
        file.close()
    else:
        path.write_bytes(b"no database" * 400 if damage == "scribbled" else held[:at] + b"4" + held[at + 1 :])
    watched.restart()
    watched.look()

    assert isinstance(watched.said[0], EvidenceGap)
    [baseline] = [each for each in watched.said if isinstance(each, LogBaseline)]
    assert baseline.occasion.value == "gap"
    assert list(path.parent.glob(f"{FILE_NAME}.unreadable-*"))


def test_a_partition_that_cannot_be_read_is_said_once_and_its_state_when_it_is_back(watched: Watched) -> None:
    """Not at the first look, as a broker may be writing it; the interval begins where it was read last."""
    metadata, aside = watched.disk.home / "partition.metadata", watched.root / "aside"
    seen_ms = watched.now_ms
    metadata.rename(aside)
    watched.look()
    assert watched.said == []
    watched.look()
    watched.restart()
    watched.look()

    [gap] = watched.said
    assert isinstance(gap, EvidenceGap)
    assert (gap.problem, gap.topic, gap.partition) == ("partition_unreadable", "orders", 0)
    assert gap.not_before_ms == seen_ms

    watched.said.clear()
    aside.rename(metadata)
    watched.look()
    [baseline] = watched.said
    assert isinstance(baseline, LogBaseline)
    assert baseline.occasion.value == "gap"


def test_a_checkpoint_that_cannot_be_read_is_said_once(watched: Watched) -> None:
    """What it would have told stays as it was, and that nobody read it is evidence."""
    (watched.disk.home.parent / "replication-offset-checkpoint").write_bytes(b"scribbled")
    for _ in range(4):
        watched.look()

    [gap] = watched.said
    assert isinstance(gap, EvidenceGap)
    assert gap.problem == "checkpoint_unreadable"
    assert "replication-offset-checkpoint" in gap.detail
    assert watched.observer.unread_count == 1


def test_after_a_look_that_failed_each_replica_says_its_whole_state(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What went on meanwhile is told with the interval since the last look that did not fail."""
    seen_ms = watched.now_ms
    with monkeypatch.context() as patched:
        patched.setattr(watched.observer, "survey", _fail)
        for _ in range(3):
            with pytest.raises(Killed):
                watched.look()
    watched.disk.roll(4)
    watched.look()
    watched.look()

    closed, baseline = watched.said
    assert isinstance(closed, SegmentClosed)
    assert closed.not_before_ms == seen_ms
    assert isinstance(baseline, LogBaseline)
    assert baseline.occasion.value == "gap"


def _fail() -> HostSurvey:
    raise Killed


def test_no_log_start_is_told_while_it_is_not_known_which_files_tell_it(tmp_path: Path) -> None:
    """With Kafka's own tiered storage the entry alone counts, else the first segment too: no guess, and the
    whole state once it is known."""
    known: list[bool | None] = [None]
    watched = Watched(tmp_path, has_remote=lambda _: known[0])
    for count in (5, 6, 7):
        watched.disk.roll(count)
    watched.look()
    watched.disk.expire(1)
    for _ in range(3):
        watched.look()
    started, _, *rest = watched.said
    assert isinstance(started, ReplicaStarted)
    assert started.log_start == 0, "below the first offset there is nothing elsewhere"
    assert "log_start_advanced" not in {each.kind for each in rest}

    known[0] = False
    watched.said.clear()
    watched.look()
    [baseline] = watched.said
    assert isinstance(baseline, LogBaseline)
    assert (baseline.occasion.value, baseline.log_start) == ("gap", 5)
    watched.disk.expire(1)
    for _ in range(2):
        watched.look()
    [moved] = [each for each in watched.said if isinstance(each, LogStartAdvanced)]
    assert (moved.old_start, moved.new_start) == (5, 11)


def test_each_log_says_its_whole_state_once_in_six_hours(watched: Watched) -> None:
    """In its own minute of them, not with all others; its watermark not oftener than every ten minutes."""
    looks = 24
    for _ in range(looks):
        watched.now_ms += BASELINE_EVERY_MS // looks
        watched.disk.append(1)
        watched.disk.commit()
        watched.look()

    assert len([each for each in watched.said if isinstance(each, LogBaseline)]) == 1
    watermarks = [each.occurred_at_ms for each in watched.said if isinstance(each, HighWatermark)]
    assert watermarks
    assert min(b - a for a, b in pairwise(watermarks)) >= WATERMARK_EVERY_MS


def test_no_start_is_ever_above_what_was_published_before_it(watched: Watched) -> None:
    """A log that closes a segment each minute, from its first on, and keeps few: by the time that a segment
    goes, a watermark at or above its end was said, so that nobody takes the start for one above all
    that was committed. With nothing closed the watermark waits for its ten minutes."""
    watched.disk.commit()
    for turn in range(12):
        watched.disk.roll(5)
        watched.disk.commit()
        for _ in range(6):
            watched.now_ms += 10_000
            watched.look()
        if turn:
            watched.disk.expire(1)
    highest, starts = 0, 0
    for each in watched.said:
        if isinstance(each, LogStartAdvanced):
            assert each.new_start <= highest
            starts += 1
        elif isinstance(each, HighWatermark):
            highest = max(highest, each.high_watermark)
    assert starts >= 8

    watched.said.clear()
    for _ in range(12):
        watched.disk.append(1)
        watched.disk.commit()
        watched.now_ms += 30_000
        watched.look()
    assert len([each for each in watched.said if isinstance(each, HighWatermark)]) <= 1
