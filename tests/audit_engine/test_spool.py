"""What the spool took is there afterwards, under the number it was given; what it did not, leaves a hole."""

from __future__ import annotations

import hashlib
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from audit_engine.errors import (
    SpoolFull,
    SpoolInUse,
    SpoolOfAnother,
    SpoolTooNew,
    SpoolUnusable,
    SpoolUnwritable,
)
from audit_engine.spool import EmitterName, Spool
from audit_engine.spool.spool import EVENT_BYTES_MAX, OUTCOME_BYTES
from audit_engine.wire import Envelope, Follows, decode
from rules.events import Heartbeat, LogEvent
from tests.audit_engine.events import CLUSTER_ID, LOG, OTHER_LOG, certificate, heartbeat, stalled

pytestmark = pytest.mark.slow

NAME = EmitterName(CLUSTER_ID, 1, "agent")
START_MS = 1_700_000_000_000
KILLS = 6


@dataclass(slots=True)
class Clock:
    ms: int = START_MS

    def __call__(self) -> int:
        return self.ms


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


def _pending(spool: Spool) -> list[Envelope]:
    return [decode(each.value) for each in spool.pending(limit=1_000_000)]


def _seqs(spool: Spool) -> list[int]:
    return [each.emitter_seq for each in _pending(spool)]


def test_what_is_emitted_is_there_in_order_with_rising_numbers(path: Path) -> None:
    """Each event under the next number of the emitter and of its log, keyed by its log."""
    events: list[LogEvent] = [stalled(1), stalled(2, OTHER_LOG), certificate(3)]
    with Spool(path, NAME) as spool:
        for event in events:
            spool.emit(event, role="leader")

        assert [each.event for each in _pending(spool)] == events
        assert [(each.emitter_seq, each.log_seq) for each in _pending(spool)] == [(0, 0), (1, 0), (2, 1)]
        assert spool.pending()[1].key == f"{OTHER_LOG.topic_id}:{OTHER_LOG.partition}".encode()
        assert {each.role for each in _pending(spool)} == {"leader"}


def test_an_event_about_no_log_is_numbered_by_the_emitter_alone(path: Path) -> None:
    """A heartbeat between two events of a log leaves no hole in the log's own numbers."""
    with Spool(path, NAME) as spool:
        spool.emit_many([stalled(1), heartbeat(1), stalled(2)])

        assert [(each.emitter_seq, each.log_seq) for each in _pending(spool)] == [(0, 0), (1, None), (2, 1)]
        assert spool.pending()[1].key == b"emitter:1:agent"


def test_a_heartbeat_says_how_far_everything_is(path: Path) -> None:
    """Its number before, its logs' numbers as one digest, what was lost: a hole shows without the events."""
    with Spool(path, NAME) as spool:
        spool.beat(event_id="h0", occurred_at_ms=1)
        spool.emit_many([stalled(1), stalled(2, OTHER_LOG), stalled(3)])
        spool.beat(event_id="h1", occurred_at_ms=2, metadata_offset=77)

        first, *_, last = [each.event for each in _pending(spool)]

    lines = [f"{OTHER_LOG.topic_id}:0:0\n", f"{LOG.topic_id}:3:1\n"]
    assert isinstance(first, Heartbeat)
    assert isinstance(last, Heartbeat)
    assert (first.last_seq, first.log_count) == (-1, 0)
    assert (last.last_seq, last.log_count, last.lost_count, last.metadata_offset) == (3, 2, 0, 77)
    assert last.log_seqs_digest == hashlib.sha256("".join(lines).encode()).hexdigest()
    assert last.cluster_id == CLUSTER_ID


def test_a_restart_keeps_what_waits_and_begins_a_higher_incarnation(path: Path) -> None:
    """The next run has the last one's events as they are, and says which number that one had reached."""
    clock = Clock()
    with Spool(path, NAME, now_ms=clock) as first:
        first.emit_many([stalled(1), stalled(2)])
        before = first.pending()
    clock.ms -= 5_000  # the wall clock was put back meanwhile
    with Spool(path, NAME, now_ms=clock) as second:
        second.emit(stalled(3))

        assert second.pending()[:2] == before
        assert second.emitter.incarnation == first.emitter.incarnation + 1
        last = _pending(second)[-1]
        assert (last.emitter_seq, last.is_first) == (0, True)
        assert last.follows == Follows(first.emitter.incarnation, 1)


def test_a_run_that_said_nothing_is_not_the_one_before(path: Path) -> None:
    """`follows` names the last incarnation of which there is something to look for."""
    with Spool(path, NAME) as first:
        first.emit(stalled(1))
    Spool(path, NAME).close()
    with Spool(path, NAME) as third:
        third.emit(stalled(2))

        assert _pending(third)[-1].follows == Follows(first.emitter.incarnation, 0)


def test_a_spool_without_a_past_says_so(path: Path) -> None:
    """The first event of a new file follows nothing known, and only the first says it."""
    with Spool(path, NAME) as spool:
        spool.emit(stalled(1))
        spool.emit(stalled(2))

        assert [(each.is_first, each.follows) for each in _pending(spool)] == [(True, None), (False, None)]


def test_time_never_falls_within_an_incarnation(path: Path) -> None:
    """A clock that is put back does not take `observed_at_ms` with it; the event's own time is its own."""
    clock = Clock()
    with Spool(path, NAME, now_ms=clock) as spool:
        spool.emit(stalled(1, at_ms=77))
        clock.ms -= 60_000
        spool.emit(stalled(2, at_ms=55))

        assert [each.observed_at_ms for each in _pending(spool)] == [START_MS, START_MS]
        assert [each.event.occurred_at_ms for each in _pending(spool)] == [77, 55]


def test_many_threads_leave_no_hole_and_no_number_twice(path: Path) -> None:
    """Eight threads at once: numbers are those of the order on disk, and each emit is there."""
    with Spool(path, NAME) as spool, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: spool.emit(stalled(number)), range(200)))

        assert _seqs(spool) == list(range(200))
        assert {each.event.event_id for each in _pending(spool)} == {f"event-{n}" for n in range(200)}


def test_what_was_acknowledged_is_not_handed_out_again(path: Path) -> None:
    """Only what Kafka does not have is pending, after a restart, too; acknowledged twice is once."""
    with Spool(path, NAME) as spool:
        spool.emit_many([stalled(n) for n in range(4)])
        positions = [each.position for each in spool.pending()]
        spool.acknowledge([positions[0], positions[2]])
        spool.acknowledge([positions[0]])

        assert _seqs(spool) == [1, 3]
        assert (spool.counters().pending, spool.counters().acknowledged) == (2, 2)
    with Spool(path, NAME) as again:
        assert _seqs(again) == [1, 3]
        assert again.counters().pending == 2


def test_acknowledged_events_are_kept_for_a_while(path: Path) -> None:
    """Until `keep_ms` is over they could be told again; then they go."""
    clock = Clock()
    with Spool(path, NAME, now_ms=clock, keep_ms=1_000) as spool:
        spool.emit(stalled(1))
        spool.acknowledge([spool.pending()[0].position])
        kept = spool.counters().kept_bytes
        clock.ms += 1_001
        spool.acknowledge([])

        assert kept > 0
        assert spool.counters().kept_bytes == 0


def test_room_is_taken_from_what_was_acknowledged(path: Path) -> None:
    """The bound holds for both together; nothing that waits gives way to anything."""
    with Spool(path, NAME, limit_bytes=20_000) as spool:
        for number in range(200):
            spool.emit(stalled(number))
            spool.acknowledge([spool.pending()[0].position])
        counters = spool.counters()

        assert counters.lost == 0
        assert 10_000 < counters.kept_bytes <= 20_000


def test_a_full_spool_counts_what_it_loses_and_leaves_a_hole(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The loss is told once, counted each time, and visible in both sequences when there is room again."""
    with Spool(path, NAME, limit_bytes=2_000) as spool:
        while not spool.counters().lost:
            spool.emit(stalled(1))
        spool.emit(stalled(2))
        kept = spool.pending()
        told = [record for record in caplog.records if "lost" in record.message]
        trouble = spool.counters().trouble
        spool.acknowledge([each.position for each in kept])
        spool.emit(stalled(3))
        [after] = _pending(spool)

        assert spool.counters().lost == 2
        assert len(told) == 1
        assert trouble is not None
        assert spool.counters().trouble is None
        assert after.emitter_seq == after.log_seq == len(kept) + 2


def test_the_next_run_knows_of_a_hole_at_the_end(path: Path) -> None:
    """Numbers that were lost last are told by what the next incarnation follows."""
    with Spool(path, NAME, limit_bytes=2_000) as spool:
        while spool.counters().lost < 3:
            spool.emit(stalled(1))
        reached = len(spool.pending()) + 3 - 1
    with Spool(path, NAME, limit_bytes=20_000) as again:
        again.emit(stalled(2))

        assert _pending(again)[-1].follows == Follows(spool.emitter.incarnation, reached)


def test_a_full_spool_refuses_a_certificate_without_a_number(path: Path) -> None:
    """Nothing may be done on it, so nothing is lost by it: no hole. Small events still have their place."""
    with Spool(path, NAME, limit_bytes=OUTCOME_BYTES + 500) as spool:
        spool.emit(stalled(1))
        with pytest.raises(SpoolFull):
            spool.emit(certificate(1))
        spool.emit(stalled(2))

        assert spool.is_full
        assert _seqs(spool) == [0, 1]
        assert spool.counters().lost == 0


def test_an_event_too_large_for_the_topic_is_a_loss_and_not_a_stopper(path: Path) -> None:
    """What Kafka would never take must not stand before everything else for ever."""
    with Spool(path, NAME) as spool:
        spool.emit_many([stalled(1, reason="x" * EVENT_BYTES_MAX), stalled(2)])

        assert _seqs(spool) == [1]
        assert spool.counters().lost == 1


def test_a_disk_that_refuses_is_an_error_for_a_certificate_and_a_hole_for_the_rest(path: Path) -> None:
    """After a failed write a number is not used again: it might yet be on disk."""
    with Spool(path, NAME) as spool:
        spool.emit(stalled(1))
        spool._connection.execute("PRAGMA query_only = 1")
        spool.emit(stalled(2))
        with pytest.raises(SpoolUnwritable):
            spool.emit(certificate(3))
        spool._connection.execute("PRAGMA query_only = 0")
        spool.emit(stalled(4))

        assert _seqs(spool) == [0, 3]
        assert spool.counters().lost == 2
        assert (spool.counters().pending, spool.counters().emitted) == (2, 2)


def test_a_second_process_is_refused(path: Path) -> None:
    """One emitter, one writer: two would give one number twice."""
    with Spool(path, NAME), pytest.raises(SpoolInUse):
        Spool(path, NAME)


def test_another_emitters_spool_is_refused_and_untouched(path: Path) -> None:
    """It may hold what nobody has published; to take it over would hide that."""
    with Spool(path, NAME) as spool:
        spool.emit(stalled(1))
    with pytest.raises(SpoolOfAnother):
        Spool(path, NAME._replace(broker_id=2))
    with Spool(path, NAME) as again:
        assert _seqs(again) == [0]


def test_a_newer_layout_is_refused(path: Path) -> None:
    """An older Seawall does not write into what it does not know."""
    Spool(path, NAME).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()

    with pytest.raises(SpoolTooNew):
        Spool(path, NAME)


def test_a_folder_that_is_not_there_is_stated(tmp_path: Path) -> None:
    """Without a place to write, no agent starts."""
    with pytest.raises(SpoolUnusable):
        Spool(tmp_path / "nowhere" / "spool.db", NAME)


def _spoil_magic(path: Path) -> None:
    path.write_bytes(b"not a database at all" * 100)


def _spoil_pages(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[4096:] = random.Random(5).randbytes(len(whole) - 4096)
    path.write_bytes(whole)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


@pytest.mark.parametrize("spoil", [_spoil_magic, _spoil_pages, _cut])
def test_a_damaged_spool_is_set_aside_and_a_new_one_begun(
    path: Path, spoil: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    """The agent goes on under a higher incarnation that remembers nothing; the file stays whole."""
    clock = Clock()
    with Spool(path, NAME, now_ms=clock) as spool:
        spool.emit_many([stalled(n) for n in range(100)])
    spoil(path)
    damaged = path.read_bytes()
    clock.ms += 1
    with Spool(path, NAME, now_ms=clock) as fresh:
        fresh.emit(stalled(1))

        assert fresh.set_aside is not None
        assert fresh.set_aside.path.read_bytes() == damaged
        assert fresh.emitter.incarnation > spool.emitter.incarnation
        assert [(each.emitter_seq, each.follows) for each in _pending(fresh)] == [(0, None)]
    assert "set aside" in caplog.text


def test_nothing_is_emitted_after_the_end(path: Path) -> None:
    """A certificate that comes too late is an error, never a silence."""
    spool = Spool(path, NAME)
    spool.close()

    with pytest.raises(SpoolUnwritable):
        spool.emit(certificate(1))


def test_a_waiting_publisher_hears_of_the_next_event(path: Path) -> None:
    """`wait` returns as soon as something beyond a position is there, and says when nothing came."""
    with Spool(path, NAME) as spool, ThreadPoolExecutor(1) as pool:
        assert spool.wait(0, 0.0) is False
        waiting = pool.submit(spool.wait, 0, 30.0)
        spool.emit(stalled(1))

        assert waiting.result(30) is True


def _emitted_until_killed(path: Path, count: int) -> Iterator[str]:
    """What the process said it had emitted, killed as soon as it had said `count` times."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.audit_engine.emit_until_killed", str(path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        assert process.stdout is not None
        for _ in range(count):
            yield process.stdout.readline().strip()
        process.kill()
        yield from (line.strip() for line in process.stdout if line.endswith("\n"))


def test_a_kill_at_any_point_loses_nothing_that_emit_returned_for(path: Path) -> None:
    """Killed again and again in the middle: everything said is there, no incarnation has a hole."""
    chance = random.Random(20_260_101)
    said: set[str] = set()
    for _ in range(KILLS):
        said.update(_emitted_until_killed(path, chance.randrange(1, 60)))
    with Spool(path, NAME) as spool:
        found = _pending(spool)

    assert said <= {each.event.event_id for each in found}
    runs: dict[int, list[Envelope]] = {}
    for each in found:
        runs.setdefault(each.emitter.incarnation, []).append(each)
    assert len(runs) == KILLS
    assert all([e.emitter_seq for e in run] == list(range(len(run))) for run in runs.values())
    told = [run[0].follows for run in runs.values()]
    reached = [Follows(number, len(run) - 1) for number, run in runs.items()]
    assert told == [None, *reached[:-1]]


def test_events_of_earlier_runs_can_be_asked_for_by_kind(path: Path) -> None:
    """Also those that Kafka has taken: an agent looks for what it left open when it ended."""
    said = [stalled(1), certificate(2), stalled(3), stalled(4)]
    with Spool(path, NAME) as spool:
        spool.emit_many(said[:3])
        spool.acknowledge([each.position for each in spool.pending()])
    with Spool(path, NAME) as spool:
        spool.emit(said[3])

        assert spool.kept({said[0].kind}) == [said[0], *said[2:]]
        assert spool.kept({"trim_certified"}) == [said[1]]
        assert spool.kept({"copy_failed"}) == []
