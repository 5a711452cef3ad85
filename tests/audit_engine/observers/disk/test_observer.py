"""What outlives the observer: its memory, and the events that were not out."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from audit_engine.observers.disk.differ import BASELINE_EVERY_MS, WATERMARK_EVERY_MS
from audit_engine.observers.disk.memory import FILE_NAME
from rules.events import Event, EvidenceGap, HighWatermark, LogBaseline, SegmentDeletedLocal
from tests.audit_engine.observers.disk.test_model import Watched


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

    def emit(event: Event) -> None:
        if out:
            raise Killed
        out.append(event)

    monkeypatch.setattr(watched, "emit", emit)
    with pytest.raises(Killed):
        watched.look()
    monkeypatch.undo()
    watched.restart()
    watched.look()

    ids = [each.event_id for each in watched.said if isinstance(each, SegmentDeletedLocal)]
    assert len(ids) == 2
    assert out[0] in watched.said, "repeated as it was, since nobody knows that it was out"


@pytest.mark.parametrize("damage", ["scribbled", "a bit"])
def test_a_damaged_memory_is_set_aside_and_said(watched: Watched, damage: str) -> None:
    """An evidence gap, then whole states: nothing is compared with what cannot be relied on."""
    watched.observer.close()
    path = watched.root / "agent" / FILE_NAME
    held = path.read_bytes()
    at = held.index(b'"pieces":[[0,5,50') + len(b'"pieces":[[0,')
    path.write_bytes(b"no database" * 400 if damage == "scribbled" else held[:at] + b"4" + held[at + 1 :])
    watched.restart()
    watched.look()

    assert isinstance(watched.said[0], EvidenceGap)
    [baseline] = [each for each in watched.said if isinstance(each, LogBaseline)]
    assert baseline.occasion.value == "gap"
    assert list(path.parent.glob(f"{FILE_NAME}.unreadable-*"))


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
