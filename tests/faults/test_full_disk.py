"""The disk of an agent's own state is full: a real file system, a small one, filled by somebody else."""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from audit_engine.errors import SpoolUnwritable
from audit_engine.spool import EmitterName, Spool
from audit_engine.wire import decode
from tests.audit_engine.events import CLUSTER_ID, certificate, stalled
from tests.tiering.segments.strategies import log_record
from tests.tiering.segments.topic import TOPIC, Topic
from tiering.segments import snapshot

NAME = EmitterName(CLUSTER_ID, 1, "agent")
DISK_BYTES = 2 * 1024 * 1024
DAY_MS = 24 * 3_600_000
MORE_THAN_FIT = 10_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    at = tmp_path / "small"
    at.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(at)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", str(at)], check=True)


def fill(disk: Path) -> Path:
    """Somebody else's file takes what room there is."""
    filling = disk / "somebody-elses"
    with filling.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            os.write(file.fileno(), b"\0" * 4096)
    return filling


def test_a_spool_counts_what_finds_no_disk_and_goes_on_when_there_is_room(disk: Path) -> None:
    """Events are lost in numbers that the next heartbeat tells, a certificate is refused, and what was taken
    before and after is all there."""
    spool = Spool(disk / "events.sqlite", NAME)
    numbers = count(1)
    spool.emit(stalled(next(numbers)))
    filling = fill(disk)
    for number in numbers:  # SQLite's own files have some room left
        spool.emit(stalled(number))
        if spool.counters().lost or number > MORE_THAN_FIT:
            break
    with pytest.raises(SpoolUnwritable):
        spool.emit(certificate(next(numbers)))
    assert spool.counters().trouble is not None
    filling.unlink()
    last = next(numbers)
    spool.emit(stalled(last))
    spool.beat(event_id="beat", occurred_at_ms=1_000)

    lost, trouble = spool.counters().lost, spool.counters().trouble
    kept = [decode(each.value) for each in spool.pending(limit=MORE_THAN_FIT)]
    seqs = [each.emitter_seq for each in kept]
    assert lost >= 1
    assert trouble is None
    assert [each.event.event_id for each in kept][-2:] == [f"event-{last}", "beat"]
    assert seqs == sorted(set(seqs))
    assert seqs[-1] + 1 - len(seqs) == lost, "each number that is missing is one that is told as lost"
    spool.close()


def test_a_snapshot_that_finds_no_disk_leaves_the_last_one_whole(disk: Path) -> None:
    """The write is an error, nothing of it stays, and a restart goes on from the snapshot before it."""
    topic = Topic()
    topic.claim(log_record(0))
    folder = disk / "table"
    snapshot.save(folder, topic.table, at_end_ms=1_000)
    position = topic.table.position
    fill(disk)

    with pytest.raises(OSError, match="No space left") as refused:
        snapshot.write(folder, 0, bytes(DISK_BYTES))

    assert refused.value.errno == errno.ENOSPC
    assert sorted(each.name for each in folder.iterdir()) == ["0.snapshot"]
    found = snapshot.load(folder, TOPIC, 0, end=position, now_ms=2_000, age_max_ms=DAY_MS)
    assert not isinstance(found, snapshot.Discarded)
    assert found.position == position
