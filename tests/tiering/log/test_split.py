"""A segment scanned in parts: what is said is what one scan says, whatever the file and wherever the cut."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.encode.record_batch import encode_batch
from tests.encode.segment import batches, plain_records, write_segment
from tests.tiering.log.fuzz import mutation
from tiering.log.segment import Compaction, Depth, SegmentScan, scan_segment
from tiering.log.split import Seam, Work, scan_parts
from tiering.log.windows import walk

SEEDS = st.integers(min_value=0, max_value=2**32)
WAYS = st.sampled_from([(d, c) for d in Depth for c in Compaction])


def one_after_another(works: Sequence[Work]) -> list[SegmentScan]:
    return [work() for work in works]


def some_segment(random: Random) -> list[bytes]:
    """Batches whose epochs rise at times, with records or offsets left out at times."""
    content, offset, epoch = [], 0, random.choice((-1, 0))
    for _ in range(random.randint(2, 30)):
        offset += random.choice((0, 0, 0, 5))
        epoch += random.choice((0, 0, 1))
        records = plain_records(offset, random.randint(1, 6), value=random.randbytes(random.randint(0, 300)))
        offset += len(records)
        last = records[-1].offset - records[0].offset
        if len(records) > 2 and random.random() < 0.1:
            del records[1]
        codec = random.choice(("none", "none", "zstd"))
        content.append(encode_batch(records, codec=codec, leader_epoch=epoch, last_offset_delta=last))
    return content


def in_parts(path: Path, parts: int, way: tuple[Depth, Compaction]) -> SegmentScan | None:
    return scan_parts(
        path, parts=parts, run=one_after_another, depth=way[0], compaction=way[1], part_bytes_min=1
    )


@pytest.mark.slow
@given(seed=SEEDS, parts=st.integers(min_value=2, max_value=5), way=WAYS)
def test_parts_of_any_file_say_what_one_scan_says(
    tmp_path_factory: pytest.TempPathFactory, seed: int, parts: int, way: tuple[Depth, Compaction]
) -> None:
    """Good, torn or damaged in any way: the sum of the parts is the scan of the whole, or there is none."""
    random = Random(seed)
    content = b"".join(some_segment(random))
    if random.random() < 0.5:
        content = mutation([content], seed, 0).blob
    path = write_segment(tmp_path_factory.mktemp("segment"), 0, [content])

    found = in_parts(path, parts, way)

    assert found in (None, scan_segment(path, depth=way[0], compaction=way[1]))


@given(seed=SEEDS, way=WAYS)
def test_no_guess_of_where_to_cut_changes_what_is_said(
    tmp_path_factory: pytest.TempPathFactory, seed: int, way: tuple[Depth, Compaction]
) -> None:
    """Seams at any byte, with any offset, also on a boundary of batches and off by one in offset."""
    random = Random(seed)
    content = some_segment(random)
    joined = b"".join(content)
    bounds = walk(bytearray(joined), len(joined))
    positions = random.sample(bounds[1:-1], random.randint(1, min(3, len(bounds) - 2)))
    if random.random() < 0.5:
        positions[0] = random.randrange(1, len(joined))
    lies = [
        Seam(
            position=position,
            offset=int.from_bytes(joined[position : position + 8], "big", signed=True)
            + random.choice((0, 0, -1, 1)),
        )
        for position in sorted(set(positions))
    ]
    path = write_segment(tmp_path_factory.mktemp("segment"), 0, content)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tiering.log.split.find_seams", lambda *_, **__: lies)
        found = in_parts(path, len(lies) + 1, way)

    assert found in (None, scan_segment(path, depth=way[0], compaction=way[1]))


@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("depth", list(Depth))
def test_a_good_segment_is_told_by_its_parts(tmp_path: Path, depth: Depth, parts: int) -> None:
    """Parts of a segment without a hole need no second scan, and add up to one: counts, epochs, times."""
    content = [
        *batches(0, count=60, leader_epoch=-1),
        *batches(180, count=60, leader_epoch=3, codec="zstd"),
        *batches(360, count=60, leader_epoch=4),
    ]
    path = write_segment(tmp_path, 0, content)

    assert in_parts(path, parts, (depth, Compaction.NEVER)) == scan_segment(path, depth=depth)


def test_a_hole_at_the_seam_is_counted_where_the_log_was_compacted(tmp_path: Path) -> None:
    """Offsets that are missing between two parts are missing from the whole; else one scan tells."""
    path = write_segment(tmp_path, 0, [*batches(0, count=1, records_each=30), *batches(40, count=1)])

    possible = in_parts(path, 2, (Depth.BATCHES, Compaction.POSSIBLE))

    assert possible is not None
    assert (possible.holes, possible.missing_offsets) == ([(30, 40)], 10)
    assert in_parts(path, 2, (Depth.BATCHES, Compaction.NEVER)) is None


def test_an_epoch_that_steps_back_at_the_seam_is_left_to_one_scan(tmp_path: Path) -> None:
    """Each part is good by itself, and the two together are not."""
    before = batches(0, count=1, records_each=30, leader_epoch=2)
    path = write_segment(tmp_path, 0, [*before, *batches(30, count=1, leader_epoch=1)])

    assert in_parts(path, 2, (Depth.BATCHES, Compaction.NEVER)) is None


def run_alone(path: Path, script: str) -> str:
    """What the script prints in a fresh process, as the command is: one thread, and `path` scanned whole."""
    preamble = f"""
        import os, signal, threading
        from pathlib import Path
        from tiering.log import split
        from tiering.log.segment import scan_segment
        split.PART_BYTES_MIN = 1
        os.sched_getaffinity = lambda _: {{0, 1}}
        path = Path({str(path)!r})
        before = os.listdir("/proc/self/fd")
        """
    epilogue = """
        assert os.listdir("/proc/self/fd") == before
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("no child is left")
        """
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(map(dedent, (preamble, script, epilogue)))],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_segment(tmp_path, 0, batches(0, count=200))


def test_parts_are_scanned_by_processes_that_are_gone_afterwards(good: Path) -> None:
    """One child for two parts; bytes told add up to the file; no process and no descriptor stays."""
    said = run_alone(
        good,
        """
        forks, told, fork = [], [], os.fork
        os.fork = lambda: forks.append(1) or fork()
        found = split.scan_segment_in_parts(path, on_progress=told.append)
        assert found == scan_segment(path), found
        print(len(forks), sum(told) == found.size_bytes)
        """,
    )

    assert said == "1 True\nno child is left\n"


@pytest.mark.parametrize(
    "end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)", "1 / 0", "raise KeyboardInterrupt"]
)
def test_a_process_that_ends_before_its_work_is_no_pass(good: Path, end: str) -> None:
    """Killed or failed, it makes the segment be scanned from its beginning; its bytes are told once."""
    said = run_alone(
        good,
        f"""
        run, told = split.run_forked, []
        def ends():
            {end}
        seen = []
        split.run_forked = lambda works: seen.append(run([works[0], ends]))
        found = split.scan_segment_in_parts(path, on_progress=told.append)
        assert found == scan_segment(path), found
        print(seen, sum(told) == found.size_bytes)
        """,
    )

    assert said == "[None] True\nno child is left\n"


def test_a_failure_of_the_first_part_ends_the_others(good: Path) -> None:
    """Whatever is raised here is raised, and no process goes on without us."""
    said = run_alone(
        good,
        """
        def waits():
            signal.pause()
        def refuses():
            raise KeyboardInterrupt
        try:
            split.run_forked([refuses, waits])
        except KeyboardInterrupt:
            print("interrupted")
        """,
    )

    assert said == "interrupted\nno child is left\n"


@pytest.mark.parametrize("refusal", ["thread", "no process to be had"])
def test_where_a_fork_is_unsafe_or_refused_one_scan_tells(good: Path, refusal: str) -> None:
    """A second thread of this process, or a system that is out of processes: the same is said by one scan."""
    said = run_alone(
        good,
        f"""
        def refused():
            raise BlockingIOError(11, "Resource temporarily unavailable")
        fork, os.fork = os.fork, refused
        stop = threading.Event()
        other = threading.Thread(target=stop.wait)
        if {refusal == "thread"}:
            other.start()
            assert not split.is_only_thread()
            os.fork = lambda: 1 / 0
        found = split.scan_segment_in_parts(path)
        stop.set()
        if other.ident:
            other.join()
        print(found == scan_segment(path))
        """,
    )

    assert said == "True\nno child is left\n"


def test_the_command_has_one_thread_when_it_scans() -> None:
    """What `seawall log verify` imports starts no thread, native ones counted: it may fork."""
    script = (
        "import seawall.cli.log, seawall.cli.log.verify; from tiering.log import split; "
        "print(split.is_only_thread())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}

    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )

    assert ran.stdout == "True\n"
