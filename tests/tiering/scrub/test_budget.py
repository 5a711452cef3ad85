"""Run after run: each within its budget, each going on where the last one stopped, however that was."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rules.events import ScrubDepth, ScrubOutcome
from tests.tiering.scrub.kit import NOW_MS, Kit
from tests.tiering.store.memory import MemoryStore
from tiering.scrub.damage import Checked
from tiering.scrub.look import size_of
from tiering.scrub.memory import FILE_NAME, Memory, ScrubMemoryUnusable
from tiering.scrub.plan import Subset
from tiering.scrub.ports import Ask
from tiering.segments.records import SegmentState
from tiering.store.errors import Denied
from tiering.store.interface import ListedVersion, Page, PageToken
from tiering.store.patient import patient
from tiering.store.throttle import Throttle

DEEP = ScrubDepth.DEEP.value


def bases(kit: Kit) -> set[int]:
    """The segments that were looked at."""
    return {each.base_offset for each in kit.scrubbed if each.scrub_depth is ScrubDepth.DEEP}


def test_each_run_reads_no_more_than_its_budget_and_together_they_read_all(kit: Kit) -> None:
    """Those looked at longest ago first: seven segments in runs of three come to three runs for a round."""
    sizes = [size_of(kit.copy()) for _ in range(7)]
    ask = Ask(max_bytes=3 * max(sizes), workers=2)

    rounds = []
    for _ in range(5):
        report = kit.scrub(ask)
        assert ask.max_bytes is not None
        assert report.read_bytes <= ask.max_bytes
        assert report.segments + report.segments_left == 7
        rounds.append(bases(kit))

    assert rounds == [{0, 8, 16}, {24, 32, 40}, {48, 0, 8}, {16, 24, 32}, {40, 0, 8}]


def test_a_segment_larger_than_the_budget_is_told_and_keeps_nobody_back(kit: Kit) -> None:
    """No run with this budget would ever read it: skipped, and the run is partial."""
    large = kit.copy(batches=40)
    small = kit.copy()

    report = kit.scrub(Ask(max_bytes=size_of(small)))

    assert report.counts == {ScrubOutcome.SKIPPED: 3, ScrubOutcome.VERIFIED: 3}
    assert {(each.problem, each.record.segment_id) for each in report.told} == {
        ("larger_than_budget", large.segment_id)
    }
    assert (report.segments_too_large, report.segments_left) == (1, 0)


def test_when_the_time_is_up_what_has_begun_is_given_up(kit: Kit) -> None:
    """No event, no note: it is the first of the next run. What had come to its end before counts."""
    for _ in range(4):
        kit.copy()

    def slow(size_bytes: int) -> None:
        kit.hands.turn(0.1)

    kit.pace = slow
    report = kit.scrub(Ask(max_s=1.0, workers=1))
    first = bases(kit)

    assert 1 <= report.segments < 4
    assert report.segments + report.segments_left == 4
    kit.scrub(Ask(max_s=1.0, workers=1))
    assert first.isdisjoint(bases(kit))


def test_bytes_come_at_the_rate_that_was_asked_for(kit: Kit) -> None:
    """Over all workers together: as many seconds as the rate makes of what was read, but for one burst."""
    for _ in range(5):
        kit.copy()
    hands, burst = kit.hands, 500
    throttle = Throttle(bytes_per_s=1000, burst_bytes=burst, clock=hands.clock, sleep=hands.sleep)
    kit.pace = throttle.take
    began_s = hands.clock()

    report = kit.scrub(Ask(workers=3))

    assert report.read_bytes > 5000
    assert hands.clock() - began_s >= (report.read_bytes - burst) / 1000


def test_logs_that_there_was_no_time_to_list_are_left(kit: Kit) -> None:
    """A listing that takes longer than the run is given up: left, and nothing is said of the log."""
    kit.copy()
    kit.copy()

    class Slow(MemoryStore):
        def versions_page(self, prefix: str, token: PageToken | None) -> Page[ListedVersion]:
            kit.hands.turn(6.0)
            return super().versions_page(prefix, token)

    kit.objects = patient(Slow(kit.bucket, page_entries=1))

    report = kit.scrub(Ask(max_s=10.0))

    assert (report.logs_listed, report.logs_left, report.unlisted_count) == (0, 1, 0)
    assert kit.events == []


def test_a_run_gets_somewhere_whatever_its_time(kit: Kit) -> None:
    """One segment takes longer than the whole run may: it is read to its end, once begun."""
    kit.copy()
    kit.copy()
    kit.pace = lambda _: kit.hands.turn(3600.0)

    report = kit.scrub(Ask(max_s=10.0, workers=1))

    assert (report.segments, report.segments_left) == (1, 1)
    assert report.counts == {ScrubOutcome.VERIFIED: 3}


def test_shares_look_at_every_segment_once(kit: Kit) -> None:
    """Three hosts, each with a folder of its own: no segment is left out, none is read twice."""
    for _ in range(9):
        kit.copy()
    seen: list[int] = []
    for part in (1, 2, 3):
        folder = kit.folder / str(part)
        folder.mkdir()
        kit.scrub(Ask(subset=Subset(part=part, parts=3)), memory=Memory(folder, now_ms=0))
        seen += bases(kit)

    assert sorted(seen) == [8 * n for n in range(9)]


def test_what_could_not_be_told_comes_first_once(kit: Kit) -> None:
    """In the next run before all that was told; still unclear then, it takes its turn like the others."""
    records = [kit.copy() for _ in range(4)]
    ask = Ask(max_bytes=size_of(records[0]) + 10, workers=1)
    for _ in range(4):
        kit.scrub(ask)
    store = MemoryStore(kit.bucket)
    store.refuse("read", *[Denied] * 100)
    kit.objects = patient(store)
    kit.scrub(ask)
    assert [bases(kit), {each.problem for each in kit.scrubbed}] == [{0}, {"store_error"}]

    kit.objects = None
    turns = []
    for _ in range(4):
        kit.scrub(ask)
        turns.append(min(bases(kit)))

    assert turns == [0, 8, 16, 24]


def test_a_listed_look_is_no_deep_one(kit: Kit) -> None:
    """Each depth has its own order: what was only listed has not been read."""
    record = kit.copy()
    kit.copy()
    kit.scrub(Ask(depth=ScrubDepth.LISTED))

    kit.scrub(Ask(max_bytes=size_of(record)))

    assert bases(kit) == {0}
    memory = Memory(kit.folder, now_ms=0)
    assert memory.looked_at(DEEP).keys() == {record.key_stem}
    memory.close()


def test_what_is_no_more_is_forgotten(kit: Kit) -> None:
    """The memory holds the segments that there are, however long it runs."""
    record = kit.copy()
    other = kit.copy()
    kit.scrub()
    kit.topic.append(replace(record, state=SegmentState.DELETE_STARTED))

    kit.scrub()

    memory = Memory(kit.folder, now_ms=0)
    assert memory.looked_at(DEEP).keys() == {other.key_stem}
    memory.close()


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.tiering.scrub.kit import Kit
from tests.tiering.store.memory import MemoryStore
from tiering.scrub.ports import Ask
from tiering.store.patient import patient

kit = Kit(store=patient(MemoryStore()), folder=Path(sys.argv[1]), prefix="same")
for _ in range(6):
    kit.copy()
kept = kit.emit_many
def emit_many(events):
    kept(events)
    for each in events:
        print(each.kind, getattr(each, "base_offset", ""), flush=True)
    if len(kit.scrubbed) > 3 * int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
kit.emit_many = emit_many
kit.scrub(Ask(workers=1))
"""


@pytest.mark.parametrize("after", [0, 2])
def test_killed_it_goes_on_with_what_it_had_not_come_to(tmp_path: Path, after: int) -> None:
    """kill -9 between the events of a segment and their note: that one is told again, no other is."""
    here = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), str(after)],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(here)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == -9, ran.stderr
    told = sorted({int(line.split()[1]) for line in ran.stdout.splitlines() if line.startswith("scrubbed")})
    memory = Memory(tmp_path, now_ms=0)
    noted = len(memory.looked_at(DEEP))
    memory.close()

    kit = Kit(store=patient(MemoryStore()), folder=tmp_path, prefix="same", now_ms=NOW_MS + 10**6)
    records = [kit.copy() for _ in range(6)]
    kit.scrub(Ask(workers=1, max_bytes=sum(size_of(each) for each in records[noted:])))

    assert noted < len(told)
    assert bases(kit) == {record.base_offset for record in records[noted:]}


@pytest.mark.parametrize("spoil", ["torn", "foreign", "newer"])
def test_a_torn_memory_costs_order_and_nothing_else(kit: Kit, spoil: str) -> None:
    """It is set aside whole, and everything is looked at anew: nothing was ever verified on its word."""
    damaged = kit.copy()
    kit.copy()
    kit.scrub()
    path = kit.folder / FILE_NAME
    if spoil == "torn":
        path.write_bytes(path.read_bytes()[:50] + os.urandom(8000))
    else:
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 9" if spoil == "newer" else "PRAGMA user_version = 0")
        connection.close()
    kit.store.mark_deleted(f"{damaged.key_stem}.log")
    memory = Memory(kit.folder, now_ms=77)

    report = kit.scrub(memory=memory)
    memory.close()

    assert memory.set_aside == path.with_name(f"{FILE_NAME}.unreadable-77")
    assert memory.set_aside.exists()
    assert report.counts == {ScrubOutcome.VERIFIED: 5, ScrubOutcome.FAILED: 1}


def test_a_folder_that_takes_no_memory_is_said_before_anything_is_looked_at(tmp_path: Path) -> None:
    """Not even a listing."""
    with pytest.raises(ScrubMemoryUnusable, match="cannot be used"):
        Memory(tmp_path / "nowhere", now_ms=0)


def test_every_object_is_told_as_it_comes_with_how_far_it_is(kit: Kit) -> None:
    """For people who wait: one by one, after its event, and the bar ends where the work does."""
    for _ in range(3):
        kit.copy()
    told: list[Checked] = []
    kit.on_checked = lambda checked: told.append(checked) if kit.scrubbed else None

    report = kit.scrub()

    assert len(told) == 9
    last = kit.progress[-1]
    assert (last.done_bytes, last.segments, last.total_segments) == (report.read_bytes, 3, 3)
