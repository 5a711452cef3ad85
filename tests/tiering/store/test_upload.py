"""The path of a segment into the store: what was verified is what is there, or nothing is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.encode.record_batch import encode_batch
from tests.encode.segment import plain_records, write_segment
from tests.tiering.store.memory import Bucket, MemoryStore
from tests.tiering.store.sparse import write_sparse_segment
from tiering.log.segment import Compaction, scan, scan_segment
from tiering.store.errors import (
    AlreadyExists,
    ChecksumRefused,
    DefectInSegment,
    Denied,
    Missing,
    StoredDiffers,
    StoreError,
    Transient,
)
from tiering.store.interface import Stored
from tiering.store.leftovers import abort_stale_uploads, stale_uploads
from tiering.store.parts import Buffers, PartStream
from tiering.store.patient import PatientStore, patient
from tiering.store.retry import RetryPolicy
from tiering.store.settle import restore
from tiering.store.upload import MIB, UploadedSegment, Uploader, UploadLimits

pytestmark = pytest.mark.slow

PART_BYTES = 5 * MIB
LIMITS = UploadLimits(part_bytes=PART_BYTES, buffers=3, senders=2)
PROMISED_BYTES = 300 * MIB
BATCH_BYTES = 300_000  # and a little
KEY = "segment.log"


@pytest.fixture
def memory() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def store(memory: MemoryStore) -> PatientStore:
    return patient(memory, policy=RetryPolicy(attempts_max=3, soon_s=0.001, later_s=0.001))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment of three parts, no two batches alike."""
    content = [
        encode_batch(plain_records(base, 3, value=os.urandom(BATCH_BYTES // 3))) for base in range(0, 108, 3)
    ]
    return write_segment(tmp_path_factory.mktemp("large"), 0, content)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def upload(
    store: PatientStore,
    path: Path,
    *,
    limits: UploadLimits = LIMITS,
    limit_offset: int | None = None,
    compaction: Compaction = Compaction.NEVER,
    on_progress: Callable[[int], None] = lambda _: None,
) -> UploadedSegment:
    with opened(path) as descriptor, Uploader(store, limits) as uploader:
        return uploader.upload_segment(
            KEY,
            descriptor,
            base_offset=0,
            limit_offset=limit_offset,
            compaction=compaction,
            on_progress=on_progress,
        )


def content_of(bucket: Bucket, key: str = KEY) -> bytes:
    [version] = bucket.objects[key]
    return version.content


def assert_nothing_is_left(bucket: Bucket) -> None:
    assert not bucket.objects.get(KEY)
    assert bucket.uploads == {}


@pytest.mark.parametrize(
    "size_bytes",
    [
        1000,
        PART_BYTES - 1,
        PART_BYTES,
        PART_BYTES + 1,
        2 * PART_BYTES,
        3 * PART_BYTES - 1,
        3 * PART_BYTES + MIB // 2,
    ],
)
def test_every_byte_arrives(
    memory: MemoryStore, store: PatientStore, tmp_path: Path, size_bytes: int
) -> None:
    """Of segments of any size, below, at and past the borders of parts: the bytes, the size, the checksum."""
    path = write_sparse_segment(tmp_path / f"{0:020d}.log", size_bytes)

    uploaded = upload(store, path)

    assert content_of(memory.kept) == path.read_bytes()
    assert uploaded.ref.size_bytes == size_bytes
    assert uploaded.ref.version_id == memory.kept.objects[KEY][0].version_id
    assert memory.kept.uploads == {}


def test_the_scan_is_of_what_was_sent(memory: MemoryStore, store: PatientStore, large: Path) -> None:
    """The metadata of the segment comes out of the one reading that sent it."""
    uploaded = upload(store, large)

    assert uploaded.scan == scan_segment(large)
    assert content_of(memory.kept) == large.read_bytes()


def test_bytes_are_handed_over_before_they_are_judged(large: Path, tmp_path: Path) -> None:
    """A scan gives away every byte of a sound file, in order, and those of the defect before it stops."""
    broken = bytearray(large.read_bytes())
    broken[5 * MIB] ^= 1
    path = write_segment(tmp_path, 0, [bytes(broken)])
    given: dict[Path, bytearray] = {large: bytearray(), path: bytearray()}

    for source, into in given.items():
        with opened(source) as descriptor:
            found = scan(descriptor, base_offset=0, on_bytes=into.extend)

    assert given[large] == large.read_bytes()
    assert found.defect is not None
    assert broken.startswith(given[path])
    assert len(given[path]) > 5 * MIB


def test_what_fits_one_part_is_one_request(memory: MemoryStore, store: PatientStore, tmp_path: Path) -> None:
    """Small segments cost a put and a look."""
    upload(store, write_sparse_segment(tmp_path / f"{0:020d}.log", PART_BYTES))

    assert memory.asked == {"put": 1, "head": 1}


def test_an_empty_segment_is_an_empty_object(
    memory: MemoryStore, store: PatientStore, tmp_path: Path
) -> None:
    """No bytes are no defect; whether to keep such a segment is not decided here."""
    uploaded = upload(store, write_segment(tmp_path, 0, []))

    assert uploaded.ref.size_bytes == 0
    assert content_of(memory.kept) == b""


@pytest.mark.parametrize("position_share", [0.0, 0.001, 0.3, 0.6, 0.999])
def test_a_flipped_bit_is_never_uploaded(
    memory: MemoryStore, store: PatientStore, large: Path, tmp_path: Path, position_share: float
) -> None:
    """Wherever in a segment of several parts: the upload is refused, and its parts are gone."""
    broken = bytearray(large.read_bytes())
    broken[int(len(broken) * position_share) + 30] ^= 0x10
    path = write_segment(tmp_path, 0, [bytes(broken)])

    with pytest.raises(DefectInSegment, match="at byte"):
        upload(store, path)

    assert_nothing_is_left(memory.kept)


def test_a_damaged_small_segment_is_never_begun(
    memory: MemoryStore, store: PatientStore, tmp_path: Path
) -> None:
    """What fits one part is verified to its end before anything is sent."""
    path = write_segment(tmp_path, 0, [encode_batch(plain_records(0, 3), crc=1)])

    with pytest.raises(DefectInSegment, match="crc_mismatch"):
        upload(store, path)

    assert memory.asked == {}


def test_a_torn_tail_is_never_uploaded(
    memory: MemoryStore, store: PatientStore, large: Path, tmp_path: Path
) -> None:
    """A segment that ends inside a batch is refused whole."""
    path = write_segment(tmp_path, 0, [large.read_bytes()[:-5]])

    with pytest.raises(DefectInSegment, match="torn_tail"):
        upload(store, path)

    assert_nothing_is_left(memory.kept)


def test_a_hole_is_a_defect_unless_compaction_may_have_made_it(
    memory: MemoryStore, store: PatientStore, tmp_path: Path
) -> None:
    """Missing offsets are refused where nothing may have removed them, as the caller knows."""
    path = write_segment(tmp_path, 0, [encode_batch(plain_records(0, 3)), encode_batch(plain_records(5, 3))])

    with pytest.raises(DefectInSegment, match="hole"):
        upload(store, path)
    uploaded = upload(store, path, compaction=Compaction.POSSIBLE)

    assert uploaded.scan.holes == [(3, 5)]


def test_a_segment_that_reaches_into_the_next_is_refused(
    memory: MemoryStore, store: PatientStore, tmp_path: Path
) -> None:
    """Its offsets must stay below the next segment's base."""
    path = write_segment(tmp_path, 0, [encode_batch(plain_records(0, 3))])

    with pytest.raises(DefectInSegment, match="offset_beyond"):
        upload(store, path, limit_offset=2)

    assert_nothing_is_left(memory.kept)


def test_a_file_that_shrinks_meanwhile_is_refused(
    memory: MemoryStore, store: PatientStore, large: Path, tmp_path: Path
) -> None:
    """A broker may truncate a segment while it is read: nothing of it stays in the store."""
    path = write_segment(tmp_path, 0, [large.read_bytes()])

    with pytest.raises(DefectInSegment):
        upload(store, path, on_progress=lambda _: os.truncate(path, 7 * MIB))

    assert_nothing_is_left(memory.kept)


def test_an_unlinked_file_is_uploaded_from_its_descriptor(
    memory: MemoryStore, store: PatientStore, large: Path, tmp_path: Path
) -> None:
    """Retention may rename and unlink a segment that is held open: its bytes still arrive."""
    path = write_segment(tmp_path, 0, [large.read_bytes()])

    with opened(path) as descriptor, Uploader(store, LIMITS) as uploader:
        path.rename(path.with_suffix(".log.deleted")).unlink()
        uploader.upload_segment(KEY, descriptor, base_offset=0)

    assert content_of(memory.kept) == large.read_bytes()


def test_a_bit_that_turns_over_in_memory_is_refused_by_the_store(
    memory: MemoryStore, store: PatientStore, large: Path
) -> None:
    """Damage after the verification and before the part's own checksum: the checksum of the whole tells."""
    handed_out: list[bytearray] = []

    class Watched(Buffers):
        def take(self) -> bytearray:
            handed_out.append(super().take())
            return handed_out[-1]

    buffers = Watched(count=3, size_bytes=PART_BYTES)
    with ThreadPoolExecutor(2) as senders, PartStream(store, senders, buffers, KEY) as stream:
        stream.add(memoryview(large.read_bytes()))
        handed_out[-1][100] ^= 1  # the last part, not yet sent
        with pytest.raises(ChecksumRefused):
            stream.finish()

    assert_nothing_is_left(memory.kept)


@pytest.mark.parametrize("operation", ["start", "part", "finish", "head"])
def test_an_upload_that_cannot_go_on_is_undone(
    memory: MemoryStore, store: PatientStore, large: Path, operation: str
) -> None:
    """Whichever request is refused for good, no parts stay behind, and the error is the refusal."""
    memory.refuse(operation, Denied)

    with pytest.raises(Denied):
        upload(store, large)

    assert memory.kept.uploads == {}


@pytest.mark.parametrize("operation", ["put", "head"])
def test_a_failure_for_now_is_survived(
    memory: MemoryStore, store: PatientStore, tmp_path: Path, operation: str
) -> None:
    """Every request is tried again where that may help."""
    memory.refuse(operation, Transient, Transient)

    upload(store, write_sparse_segment(tmp_path / f"{0:020d}.log", 5000))

    assert memory.asked[operation] == 3


@pytest.mark.parametrize("operation", ["put", "start", "part", "finish"])
def test_a_lost_answer_makes_one_object(
    memory: MemoryStore, store: PatientStore, large: Path, tmp_path: Path, operation: str
) -> None:
    """The request was carried out, and its repetition fails or not: one version, and it is ours."""
    path = write_sparse_segment(tmp_path / f"{0:020d}.log", 5000) if operation == "put" else large
    memory.lose_answer(operation)

    uploaded = upload(store, path)

    [version] = memory.kept.objects[KEY]
    assert version.version_id == uploaded.ref.version_id
    assert version.content == path.read_bytes()


def test_an_object_of_others_is_not_taken_for_ours(
    memory: MemoryStore, store: PatientStore, large: Path
) -> None:
    """Something else under the very key is an error, whatever the answers looked like."""
    with Uploader(store, LIMITS) as uploader:
        foreign = uploader.upload_bytes(KEY, b"foreign")

    with pytest.raises(AlreadyExists):
        upload(store, large)

    assert memory.kept.objects[KEY][0].version_id == foreign.version_id
    assert memory.kept.uploads == {}


def test_what_is_read_back_must_be_what_was_sent(large: Path) -> None:
    """A store that says yes and has something else is found out before anything refers to the object."""

    class Forgetful(MemoryStore):
        def head(self, key: str, version_id: str | None = None) -> Stored:
            stored = super().head(key, version_id)
            return Stored(
                size_bytes=stored.size_bytes - 1, checksum=stored.checksum, version_id=stored.version_id
            )

    with pytest.raises(StoredDiffers, match="not what was sent"):
        upload(patient(Forgetful()), large)


def test_failures_use_up_no_buffers(memory: MemoryStore, store: PatientStore, large: Path) -> None:
    """After many uploads that fail in the middle there is as much room as before."""
    with opened(large) as descriptor, Uploader(store, LIMITS) as uploader:
        for number in range(3 * LIMITS.buffers):
            memory.refuse("part", Denied)
            with pytest.raises(Denied):
                uploader.upload_segment(f"{number}", descriptor, base_offset=0)
        uploader.upload_segment(KEY, descriptor, base_offset=0)

    assert content_of(memory.kept) == large.read_bytes()


def test_uploads_side_by_side_share_the_buffers(
    memory: MemoryStore, store: PatientStore, large: Path
) -> None:
    """More segments at once than there are buffers: each arrives whole, none waits for ever."""
    keys = [f"side/{number}" for number in range(2 * LIMITS.buffers)]

    with (
        opened(large) as descriptor,
        Uploader(store, LIMITS) as uploader,
        ThreadPoolExecutor(len(keys)) as pool,
    ):
        refs = list(pool.map(lambda key: uploader.upload_segment(key, descriptor, base_offset=0).ref, keys))

    assert [ref.key for ref in refs] == keys
    assert all(content_of(memory.kept, key) == large.read_bytes() for key in keys)


def test_small_objects_are_read_back_too(memory: MemoryStore, store: PatientStore) -> None:
    """An `.aux` or a `.json` is referenced under the same conditions as a segment."""
    memory.lose_answer("put")

    with Uploader(store, LIMITS) as uploader:
        ref = uploader.upload_bytes("a.json", b"{}")

    assert (ref.size_bytes, ref.checksum_algorithm) == (2, "CRC64NVME")
    assert ref.version_id == memory.kept.objects["a.json"][0].version_id


def test_a_version_is_restored_once(memory: MemoryStore, store: PatientStore) -> None:
    """A restore whose answer is lost, and a restore of what is live already, both come to one live object."""
    with Uploader(store, LIMITS) as uploader:
        source = uploader.upload_bytes(KEY, b"content")
    store.mark_deleted(KEY)
    memory.lose_answer("copy")

    restored = restore(store, source)
    again = restore(store, source)

    assert restored == again
    assert restored.version_id != source.version_id
    assert [version.is_marker for version in memory.kept.objects[KEY]] == [False, True, False]


def test_a_version_that_is_gone_cannot_be_restored(memory: MemoryStore, store: PatientStore) -> None:
    """What a lifecycle rule has removed is Missing, not silently skipped."""
    with Uploader(store, LIMITS) as uploader:
        source = uploader.upload_bytes(KEY, b"content")
    store.mark_deleted(KEY)
    del memory.kept.objects[KEY][0]

    with pytest.raises(Missing):
        restore(store, source)


def test_stale_uploads_are_told_by_their_age(memory: MemoryStore, store: PatientStore) -> None:
    """Only what was begun before the limit is aborted; looking aborts nothing."""
    old, young = memory.start_parts("a/old"), memory.start_parts("a/young")
    memory.kept.uploads[young].initiated_ms += 1
    limit_ms = memory.kept.uploads[young].initiated_ms

    assert [found.upload_id for found in stale_uploads(store, "a/", initiated_before_ms=limit_ms)] == [old]
    assert len(memory.kept.uploads) == 2
    ended = list(abort_stale_uploads(store, "a/", initiated_before_ms=limit_ms))

    assert [found.upload_id for found in ended] == [old]
    assert list(memory.kept.uploads) == [young]


def test_a_stop_undoes_what_is_under_way(memory: MemoryStore, large: Path) -> None:
    """What `sleep` raises at a stop ends the upload, with nothing left in the store."""

    class Stopped(Exception):
        pass

    def stop(_: float) -> None:
        raise Stopped

    memory.refuse("part", Transient)

    with pytest.raises(Stopped):
        upload(patient(memory, sleep=stop), large)

    assert_nothing_is_left(memory.kept)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads its peak of memory from /proc")
def test_a_segment_of_two_gib_is_uploaded_in_300_mb(tmp_path: Path) -> None:
    """The largest segment that Kafka makes, in a process of its own: its peak of memory keeps the promise."""
    path = write_sparse_segment(tmp_path / f"{0:020d}.log", 2048 * MIB - 1)

    done = subprocess.run(
        [sys.executable, "-m", "tests.tiering.store.upload_alone", str(path)],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < PROMISED_BYTES


def test_limits_that_no_store_takes_are_refused() -> None:
    """Parts below S3's least size would fail only at the finish."""
    with pytest.raises(AssertionError):
        UploadLimits(part_bytes=MIB)


def test_errors_say_where(memory: MemoryStore, store: PatientStore, large: Path) -> None:
    """Bucket, key and operation are part of every message, and the fields of every error."""
    memory.refuse("finish", Denied)

    with pytest.raises(StoreError) as raised:
        upload(store, large)

    assert (raised.value.bucket, raised.value.key) == ("memory", KEY)
    assert "finish" in str(raised.value)
    assert "'segment.log' in bucket memory" in str(raised.value)
