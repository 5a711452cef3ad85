"""The cache gives back what was put or nothing, stays within its bound, and never fails a read."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.encode.record_batch import PlainRecord
from tests.tiering.reader.tier import T0_MS, LogOfBatches, Tier
from tiering.reader.disk_cache import TEMPORARY, USAGE, DiskCache
from tiering.reader.interface import ChunkName, ReaderLimits
from tiering.reader.reader import TieredReader

pytestmark = pytest.mark.slow

CHUNK_BYTES = 1000
ENTRY_BYTES = CHUNK_BYTES + 16


def name_of(number: int, *, version_id: str = "v1") -> ChunkName:
    return ChunkName("bucket", "a/key", version_id, CHUNK_BYTES, number, CHUNK_BYTES)


def content_of(number: int) -> bytes:
    return bytes([number % 256]) * CHUNK_BYTES


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != USAGE]


def size_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in entries(folder))


def test_what_was_put_comes_back_to_anyone_with_the_folder(tmp_path: Path) -> None:
    """By its whole name only: another version is another chunk."""
    DiskCache(tmp_path).put(name_of(1), content_of(1))
    again = DiskCache(tmp_path)

    assert again.get(name_of(1)) == content_of(1)
    assert again.get(name_of(2)) is None
    assert again.get(name_of(1, version_id="v2")) is None
    assert (again.counters.hits, again.counters.misses) == (1, 2)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 8 * ENTRY_BYTES - 1))
def test_a_flipped_bit_in_an_entry_is_a_miss(tmp_path_factory: pytest.TempPathFactory, bit: int) -> None:
    """Counted, removed, and replaced by the next put."""
    folder = tmp_path_factory.mktemp("cache")
    cache = DiskCache(folder)
    cache.put(name_of(1), content_of(1))
    (path,) = entries(folder)
    stored = bytearray(path.read_bytes())
    stored[bit // 8] ^= 1 << bit % 8
    path.write_bytes(stored)

    assert cache.get(name_of(1)) is None
    assert cache.counters.corrupt == 1
    assert entries(folder) == []
    cache.put(name_of(1), content_of(1))
    assert cache.get(name_of(1)) == content_of(1)


def test_an_entry_under_another_name_is_not_believed(tmp_path: Path) -> None:
    """A whole and sound entry that somebody moved is of another chunk."""
    cache = DiskCache(tmp_path)
    cache.put(name_of(1), content_of(1))
    (one,) = entries(tmp_path)
    cache.put(name_of(2), content_of(2))
    (two,) = set(entries(tmp_path)) - {one}
    one.replace(two)

    assert cache.get(name_of(2)) is None
    assert cache.counters.corrupt == 1


def test_a_reader_fetches_again_what_the_cache_spoiled(tmp_path: Path) -> None:
    """A flipped byte in a cache file changes no record: the chunk is fetched once more, and kept."""
    log, tier = LogOfBatches(), Tier()
    for _ in range(20):
        log.append([PlainRecord(offset=0, timestamp_ms=T0_MS, value=b"value")])
    tier.claim(log)
    tier.copy(log, 0, 20)
    cache, limits = DiskCache(tmp_path), ReaderLimits(chunk_bytes=300)

    def read() -> list[bytes | None]:
        with TieredReader(tier.objects, cache=cache, limits=limits) as reader:
            return [record.value for record in reader.records(tier.log, 0, 20)]

    first = read()
    asked = tier.store.asked["read"]
    for path in entries(tmp_path)[:2]:
        stored = bytearray(path.read_bytes())
        stored[100] ^= 1
        path.write_bytes(stored)

    assert read() == first == [b"value"] * 20
    assert (tier.store.asked["read"], cache.counters.corrupt) == (asked + 2, 2)
    assert read() == first
    assert tier.store.asked["read"] == asked + 2


def test_the_bound_holds_and_the_least_used_go(tmp_path: Path) -> None:
    """After each put; what was read lately outlives what was not."""
    cache = DiskCache(tmp_path, limit_bytes=10 * ENTRY_BYTES)
    cache.put(name_of(0), content_of(0))
    for number in range(1, 40):
        cache.put(name_of(number), content_of(number))
        assert size_bytes(tmp_path) <= 10 * ENTRY_BYTES
        for age, path in enumerate(sorted(entries(tmp_path), key=lambda each: each.stat().st_mtime_ns)):
            os.utime(path, ns=(age, age))  # all long ago, in the order in which they were used
        assert cache.get(name_of(0)) == content_of(0)
        assert cache.get(name_of(number)) == content_of(number)
    assert cache.counters.evicted > 0


def test_nobody_else_may_look_into_a_folder_of_ours(tmp_path: Path) -> None:
    """What is kept is what the topics hold."""
    cache = DiskCache(tmp_path / "made")
    cache.put(name_of(1), content_of(1))

    assert (tmp_path / "made").stat().st_mode & 0o077 == 0


def test_a_chunk_larger_than_the_cache_is_not_kept(tmp_path: Path) -> None:
    """It would only drive everything else out."""
    cache = DiskCache(tmp_path, limit_bytes=ENTRY_BYTES - 1)

    cache.put(name_of(1), content_of(1))

    assert (cache.get(name_of(1)), entries(tmp_path)) == (None, [])


def test_dead_writers_files_and_wrong_counts_are_put_right(tmp_path: Path) -> None:
    """What a crash left is removed at the next eviction; a lost or broken count is taken anew."""
    cache = DiskCache(tmp_path, limit_bytes=5 * ENTRY_BYTES)
    for number in range(4):
        cache.put(name_of(number), content_of(number))
    leftover = entries(tmp_path)[0].with_name(f"dead{TEMPORARY}")
    leftover.write_bytes(b"x" * 100)
    (tmp_path / USAGE).write_bytes(b"?")

    for number in range(4, 12):
        cache.put(name_of(number), content_of(number))
        assert size_bytes(tmp_path) <= 5 * ENTRY_BYTES

    assert not leftover.exists()


def test_a_folder_that_cannot_be_written_fails_no_read(tmp_path: Path) -> None:
    """It is counted, and everything is fetched."""
    blocked = tmp_path / "a-file"
    blocked.write_text("in the way")
    cache = DiskCache(blocked)

    cache.put(name_of(1), content_of(1))

    assert cache.get(name_of(1)) is None
    assert cache.counters.refused == 2


def test_threads_share_a_folder_within_its_bound(tmp_path: Path) -> None:
    """Eight at once, two caches on one folder: only right answers, never over the bound."""
    caches = [DiskCache(tmp_path, limit_bytes=8 * ENTRY_BYTES) for _ in range(2)]

    def work(worker: int) -> int:
        cache, wrong = caches[worker % 2], 0
        for n in range(60):
            number = (worker * 7 + n) % 20
            found = cache.get(name_of(number))
            wrong += found not in (None, content_of(number))
            cache.put(name_of(number), content_of(number))
        return wrong

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(8))) == 0
    assert size_bytes(tmp_path) <= 8 * ENTRY_BYTES
    assert caches[0].counters.refused + caches[1].counters.refused == 0
    assert caches[0].counters.corrupt + caches[1].counters.corrupt == 0


WORKER = """
import sys
from pathlib import Path
from tests.tiering.reader.test_disk_cache import CHUNK_BYTES, content_of, name_of
from tiering.reader.disk_cache import DiskCache
cache = DiskCache(Path(sys.argv[1]), limit_bytes=int(sys.argv[2]))
for n in range(150):
    number = (int(sys.argv[3]) * 11 + n) % 30
    assert cache.get(name_of(number)) in (None, content_of(number))
    cache.put(name_of(number), content_of(number))
assert (cache.counters.corrupt, cache.counters.refused) == (0, 0), cache.counters
"""


def test_processes_share_a_folder_within_its_bound(tmp_path: Path) -> None:
    """Three at once evict under each other's feet: only right answers, and the bound holds for all."""
    limit = 8 * ENTRY_BYTES
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), str(limit), str(n)], env=environ)
        for n in range(3)
    ]

    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert 0 < size_bytes(tmp_path) <= limit
