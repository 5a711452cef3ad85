"""Windows: a file is cut on batch boundaries, whatever the size of the window, and never over-read."""

from __future__ import annotations

import concurrent.futures.thread
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.local.waiting import becomes_true
from tests.encode.segment import batches
from tiering.log.windows import ChainBreak, Window, read_windows

# Python's own, where this Python has them: while a thread begins, and while a pool is given work.
LOCKS = ((threading, "_shutdown_locks_lock"), (concurrent.futures.thread, "_global_shutdown_lock"))


@contextmanager
def opened(content: bytes) -> Iterator[int]:
    """An anonymous file with that content."""
    descriptor = os.memfd_create("segment")
    try:
        os.write(descriptor, content)
        yield descriptor
    finally:
        os.close(descriptor)


@given(
    records_each=st.lists(st.integers(min_value=1, max_value=40), min_size=1, max_size=20),
    window_bytes=st.integers(min_value=1, max_value=3000),
)
def test_windows_cover_the_file_batch_by_batch(records_each: list[int], window_bytes: int) -> None:
    """Windows of any size, also smaller than a batch, give every batch once, whole and in order."""
    expected = [batches(i * 100, count=1, records_each=n)[0] for i, n in enumerate(records_each)]

    seen, position = [], 0
    with opened(b"".join(expected)) as descriptor:
        for window in read_windows(descriptor, window_bytes=window_bytes):
            assert isinstance(window, Window)
            assert window.start == position
            seen += [
                bytes(window.buffer[a:b]) for a, b in zip(window.bounds, window.bounds[1:], strict=False)
            ]
            position += window.bounds[-1]

    assert seen == expected


@pytest.mark.parametrize("cut_bytes", [1, 30, 60, 61, 80])
def test_a_torn_tail_breaks_the_chain_where_it_begins(cut_bytes: int) -> None:
    """The break names the byte at which the incomplete batch starts, after all whole batches."""
    whole = b"".join(batches(0, count=3))
    torn = whole + batches(9, count=1)[0][:cut_bytes]

    with opened(torn) as descriptor:
        steps = list(read_windows(descriptor))

    assert isinstance(steps[0], Window)
    assert len(steps[0]) == 3
    assert steps[1] == ChainBreak(position=len(whole), size_bytes=len(torn))


def test_an_empty_file_gives_nothing() -> None:
    """No bytes are no window, and no break either."""
    with opened(b"") as descriptor:
        assert list(read_windows(descriptor)) == []


def test_reading_starts_where_it_is_told() -> None:
    """A start in the middle, on a boundary, gives the rest of the file."""
    content = batches(0, count=3)

    with opened(b"".join(content)) as descriptor:
        [window] = read_windows(descriptor, start=len(content[0]))

    assert isinstance(window, Window)
    assert window.start == len(content[0])
    assert len(window) == 2


def test_a_file_that_shrinks_meanwhile_breaks_the_chain(tmp_path: Path) -> None:
    """A broker may truncate a segment while it is read: that is a break, not a crash and not zeros.

    What was read ahead of the truncation may still be seen, as it stood."""
    path = tmp_path / "shrinking"
    content = b"".join(batches(0, count=500, records_each=5))
    path.write_bytes(content)
    descriptor = os.open(path, os.O_RDONLY)

    reader = read_windows(descriptor, window_bytes=2000)
    seen = b""
    for step in reader:
        if isinstance(step, ChainBreak):
            break
        seen += step.buffer[: step.bounds[-1]]
        os.truncate(path, 5000)
    rest = list(reader)

    os.close(descriptor)
    assert rest == []
    assert step == ChainBreak(position=len(seen), size_bytes=len(content))
    assert len(seen) < len(content)
    assert content.startswith(seen)


def test_a_file_that_grows_meanwhile_is_read_up_to_where_it_ended(tmp_path: Path) -> None:
    """A broker may append while a segment is read: the size is that of the beginning."""
    path = tmp_path / "growing"
    content = batches(0, count=40, records_each=5)
    path.write_bytes(b"".join(content[:20]))
    descriptor = os.open(path, os.O_RDONLY)

    seen = b""
    for step in read_windows(descriptor, window_bytes=500):
        assert isinstance(step, Window)
        seen += step.buffer[: step.bounds[-1]]
        with path.open("ab") as file:
            file.write(content[20])

    os.close(descriptor)
    assert seen == b"".join(content[:20])


def test_whoever_leaves_early_may_close_his_file(tmp_path: Path) -> None:
    """The threads that read ahead have a descriptor of their own, and leave none open behind them."""
    path = tmp_path / "left"
    path.write_bytes(b"".join(batches(0, count=500, records_each=5)))
    before = len(list(Path("/proc/self/fd").iterdir()))
    descriptor = os.open(path, os.O_RDONLY)

    reader = read_windows(descriptor, window_bytes=2000)
    first = next(reader)
    os.close(descriptor)
    second = next(reader)
    reader.close()  # type: ignore[attr-defined] # it is a generator

    assert isinstance(first, Window)
    assert isinstance(second, Window)
    assert becomes_true(lambda: len(list(Path("/proc/self/fd").iterdir())) == before, deadline_s=30)


def test_who_is_given_up_ends_whatever_lock_is_held(tmp_path: Path) -> None:
    """The collector of garbage may end it in a thread that is just beginning, or that hands work to a pool:
    an uploader's thread stood still for ever.
    """
    path = tmp_path / "given-up"
    path.write_bytes(b"".join(batches(0, count=500, records_each=5)))
    locks = [getattr(module, name, None) for module, name in LOCKS]
    is_ended = threading.Event()

    def collects() -> None:
        with ExitStack() as held:
            for lock in locks:
                held.enter_context(lock or nullcontext())
            reader.close()  # type: ignore[attr-defined] # it is a generator
        is_ended.set()

    with path.open("rb") as file:
        reader = read_windows(file.fileno(), window_bytes=2000)
        before = set(threading.enumerate())
        next(reader)
        started = set(threading.enumerate()) - before
        threading.Thread(target=collects, daemon=True).start()

        assert is_ended.wait(30)
    assert any(locks)
    assert len(started) > 1
    assert becomes_true(lambda: not any(each.is_alive() for each in started), deadline_s=30)
