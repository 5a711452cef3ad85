"""What every object store must do, as tests: mix `StoreContract` into a class that says how to make one.

A server that is known not to be S3 in a point says so in a field, and the test of that point is skipped with
the field's text as its reason. None of these may be one on which an overwrite or a lost version would pass.
"""

from __future__ import annotations

import os
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from rules.identity import ObjectRef
from tiering.store.content import InMemory
from tiering.store.errors import (
    AlreadyExists,
    ChecksumRefused,
    Missing,
    NotVersioned,
    StoreError,
    Unsupported,
)
from tiering.store.interface import (
    CHECKSUM_ALGORITHM,
    ObjectStore,
    Page,
    PageToken,
    SentPart,
    checksum_text,
    crc64,
)

Entry = TypeVar("Entry")
PART_BYTES = 5 * 1024 * 1024  # the least that S3 takes of a part that is not the last
OTHER_CHECKSUM = checksum_text(crc64(b"other bytes", 0))


def checksum_of(content: bytes) -> str:
    return checksum_text(crc64(content, 0))


def put(store: ObjectStore, key: str, content: bytes = b"content") -> ObjectRef:
    """Store an object and say what is there."""
    version_id = store.put_new(key, InMemory(content), checksum_of(content))
    stored = store.head(key, version_id)
    assert stored.checksum is not None
    return ObjectRef(key, stored.size_bytes, CHECKSUM_ALGORITHM, stored.checksum, stored.version_id)


def read(store: ObjectStore, ref: ObjectRef) -> bytes:
    assert ref.version_id is not None
    return b"".join(store.read_range(ref.key, ref.version_id, 0, ref.size_bytes))


def send(store: ObjectStore, key: str, upload_id: str, number: int, content: bytes) -> SentPart:
    return store.put_part(key, upload_id, number, InMemory(content), checksum_of(content))


def walk(page_of: Callable[[str, PageToken | None], Page[Entry]], prefix: str) -> list[Entry]:
    """Every entry of every page, once: a page may begin with entries of the page before."""
    page = page_of(prefix, None)
    found = list(page.entries)
    while page.next is not None:
        assert page.entries, "a page that says there is more, and has nothing"
        page = page_of(prefix, page.next)
        found += page.entries
    return list(dict.fromkeys(found))


class StoreContract(ABC):
    """`make_store` opens the same bucket again with other limits; `unversioned` is a second bucket."""

    checks_finish: str | None = None  # why a wrong size or checksum of the whole is not noticed at the finish
    marker_is_absence: str | None = None  # why a delete marker counts as an object to a conditional write
    is_atomic: str | None = None  # why two writers at once may both be told that they stored the object
    pages_uploads: str | None = None  # why pending uploads cannot be listed page by page

    @abstractmethod
    def make_store(self, *, page_entries: int) -> ObjectStore: ...

    @abstractmethod
    def unversioned(self) -> ObjectStore: ...

    @pytest.fixture
    def store(self) -> ObjectStore:
        return self.make_store(page_entries=1000)

    @pytest.fixture
    def pages_of_two(self, store: ObjectStore) -> ObjectStore:
        return self.make_store(page_entries=2)

    @pytest.fixture
    def prefix(self) -> str:
        """A part of the bucket for this test alone."""
        return f"contract/{uuid.uuid4()}/"

    @pytest.fixture(autouse=True)
    def _of_this_test(self, request: pytest.FixtureRequest) -> None:
        self._request = request

    def needs(self, *deviations: str | None) -> None:
        """A store that is known to deviate has to fail here: once it does not, its deviation is to go."""
        for deviation in deviations:
            if deviation is not None:
                is_sure = deviation is not self.is_atomic  # a race may be won
                self._request.applymarker(pytest.mark.xfail(reason=deviation, strict=is_sure))

    # One object.

    @pytest.mark.parametrize("size_bytes", [0, 1, 1_000_000])
    def test_what_is_put_is_there(self, store: ObjectStore, prefix: str, size_bytes: int) -> None:
        """Size, checksum and a version id are the store's own, and the bytes come back."""
        content = bytes(range(256)) * (size_bytes // 256 + 1)
        content = content[:size_bytes]

        ref = put(store, f"{prefix}a", content)

        assert (ref.size_bytes, ref.checksum) == (size_bytes, checksum_of(content))
        assert ref.version_id
        if size_bytes:
            assert read(store, ref) == content

    def test_an_object_is_never_overwritten(self, store: ObjectStore, prefix: str) -> None:
        """A second put of the same key fails and changes nothing."""
        ref = put(store, f"{prefix}a", b"first")

        with pytest.raises(AlreadyExists):
            put(store, f"{prefix}a", b"second")

        assert store.head(ref.key).version_id == ref.version_id
        assert len(walk(store.versions_page, prefix)) == 1

    def test_bytes_that_do_not_fit_the_checksum_are_refused(self, store: ObjectStore, prefix: str) -> None:
        """The store computes the checksum itself, and keeps nothing that has another."""
        with pytest.raises(ChecksumRefused):
            store.put_new(f"{prefix}a", InMemory(b"content"), OTHER_CHECKSUM)

        with pytest.raises(Missing):
            store.head(f"{prefix}a")

    def test_of_many_writers_one_wins(self, store: ObjectStore, prefix: str) -> None:
        """Puts of one key at the same moment make one object, and all others are told so."""
        self.needs(self.is_atomic)
        start = threading.Barrier(6)

        def write(number: int) -> str:
            start.wait(timeout=30)
            try:
                put(store, f"{prefix}a", b"%d" % number)
            except StoreError as error:
                return type(error).__name__
            return "stored"

        with ThreadPoolExecutor(6) as pool:
            outcomes = list(pool.map(write, range(6)))

        assert outcomes.count("stored") == 1
        assert set(outcomes) <= {"stored", "AlreadyExists", "Transient"}
        assert len(walk(store.versions_page, prefix)) == 1

    # Reading.

    @pytest.mark.parametrize(("start", "end"), [(0, 10), (5, 6), (3, 3000), (2999, 3000)])
    def test_a_range_is_half_open(self, store: ObjectStore, prefix: str, start: int, end: int) -> None:
        """`[start, end)` of a version is those bytes and no others."""
        content = bytes(range(200)) * 15
        ref = put(store, f"{prefix}a", content)
        assert ref.version_id is not None

        found = b"".join(store.read_range(ref.key, ref.version_id, start, end))

        assert found == content[start:end]

    @pytest.mark.parametrize(("start", "end"), [(0, 10), (5, 6), (3, 3000), (0, 1024), (2999, 3000)])
    def test_a_range_is_poured_into_given_memory(
        self, store: ObjectStore, prefix: str, start: int, end: int
    ) -> None:
        """The same bytes, each piece the beginning of that memory; and whoever asks next is answered."""
        content = bytes(range(200)) * 15
        ref = put(store, f"{prefix}a", content)
        assert ref.version_id is not None
        room = bytearray(1024)
        found = []

        for piece in store.pour(ref.key, ref.version_id, start, end, memoryview(room)):
            assert room.startswith(bytes(piece))
            found.append(bytes(piece))

        assert b"".join(found) == content[start:end]
        assert store.head(ref.key).size_bytes == len(content)

    def test_what_is_poured_may_be_left(self, store: ObjectStore, prefix: str) -> None:
        """Whoever stops in the middle leaves nothing behind that the next answer would be taken for."""
        content = os.urandom(3_000_000)
        ref = put(store, f"{prefix}a", content)
        assert ref.version_id is not None
        for _ in range(3):
            pieces = store.pour(ref.key, ref.version_id, 0, len(content), memoryview(bytearray(1000)))
            assert content.startswith(bytes(next(pieces)))
            del pieces

        found = b"".join(store.read_range(ref.key, ref.version_id, 0, len(content)))

        assert found == content

    def test_a_range_past_the_end_is_an_error(self, store: ObjectStore, prefix: str) -> None:
        """Nothing is made up where the object has no bytes."""
        ref = put(store, f"{prefix}a", b"content")
        assert ref.version_id is not None

        with pytest.raises(StoreError):
            b"".join(store.read_range(ref.key, ref.version_id, 100, 200))

    def test_what_is_not_there_is_missing(self, store: ObjectStore, prefix: str) -> None:
        """An unknown key is an error that names bucket, key and operation."""
        with pytest.raises(Missing) as raised:
            store.head(f"{prefix}nothing")

        assert raised.value.bucket == store.bucket
        assert raised.value.key == f"{prefix}nothing"
        assert raised.value.operation == "head"

    # Parts.

    def test_parts_become_one_object(self, store: ObjectStore, prefix: str) -> None:
        """Parts sent in any order, one of them twice, are joined by number, under the whole's checksum."""
        key = f"{prefix}a"
        pieces = [b"\1" * PART_BYTES, b"\2" * PART_BYTES, b"\3"]
        whole = b"".join(pieces)
        upload_id = store.start_parts(key)

        sent = {number: send(store, key, upload_id, number, pieces[number - 1]) for number in (3, 1, 2, 1)}
        with pytest.raises(Missing):
            store.head(key)
        parts = tuple(sent[number] for number in (1, 2, 3))
        store.finish_parts(key, upload_id, parts, size_bytes=len(whole), checksum=checksum_of(whole))

        stored = store.head(key)
        assert (stored.size_bytes, stored.checksum) == (len(whole), checksum_of(whole))
        found = b"".join(store.read_range(key, stored.version_id, PART_BYTES - 2, PART_BYTES + 2))
        assert found == b"\1\1\2\2"
        assert walk(store.uploads_page, prefix) == []

    def test_parts_never_overwrite(self, store: ObjectStore, prefix: str) -> None:
        """A multipart upload that meets an object at its finish leaves the object alone."""
        key = f"{prefix}a"
        upload_id = store.start_parts(key)
        part = send(store, key, upload_id, 1, b"second")
        ref = put(store, key, b"first")

        with pytest.raises(AlreadyExists):
            store.finish_parts(key, upload_id, (part,), size_bytes=6, checksum=checksum_of(b"second"))

        store.abort_parts(key, upload_id)
        assert store.head(key).version_id == ref.version_id

    def test_a_part_that_does_not_fit_its_checksum_is_refused(self, store: ObjectStore, prefix: str) -> None:
        """Each part is checked as it arrives."""
        upload_id = store.start_parts(f"{prefix}a")

        with pytest.raises(ChecksumRefused):
            store.put_part(f"{prefix}a", upload_id, 1, InMemory(b"content"), OTHER_CHECKSUM)

        store.abort_parts(f"{prefix}a", upload_id)

    @pytest.mark.parametrize(("size_bytes", "content"), [(7, b"other bytes"), (8, b"content")])
    def test_a_whole_that_is_not_what_was_meant_is_refused(
        self, store: ObjectStore, prefix: str, size_bytes: int, content: bytes
    ) -> None:
        """A wrong size, or a wrong checksum of the whole, stops the finish: no object."""
        self.needs(self.checks_finish)
        key = f"{prefix}a"
        upload_id = store.start_parts(key)
        part = send(store, key, upload_id, 1, b"content")

        with pytest.raises(StoreError):
            store.finish_parts(key, upload_id, (part,), size_bytes=size_bytes, checksum=checksum_of(content))

        store.abort_parts(key, upload_id)
        with pytest.raises(Missing):
            store.head(key)

    def test_an_aborted_upload_is_gone(self, store: ObjectStore, prefix: str) -> None:
        """Its parts are listed no more; aborting it again is no error."""
        key = f"{prefix}a"
        upload_id = store.start_parts(key)
        send(store, key, upload_id, 1, b"content")
        assert [upload.upload_id for upload in walk(store.uploads_page, prefix)] == [upload_id]

        store.abort_parts(key, upload_id)
        store.abort_parts(key, upload_id)

        assert walk(store.uploads_page, prefix) == []

    def test_pending_uploads_are_listed_page_by_page(
        self, store: ObjectStore, pages_of_two: ObjectStore, prefix: str
    ) -> None:
        """Each once, whatever the size of a page, also two of one key."""
        self.needs(self.pages_uploads)
        keys = [f"{prefix}a", f"{prefix}a", f"{prefix}b", f"{prefix}c", f"{prefix}d"]
        started = sorted((key, store.start_parts(key)) for key in keys)

        found = walk(pages_of_two.uploads_page, prefix)

        assert sorted((upload.key, upload.upload_id) for upload in found) == started
        for key, upload_id in started:
            store.abort_parts(key, upload_id)

    # Listing.

    def test_live_keys_are_listed_in_order(
        self, store: ObjectStore, pages_of_two: ObjectStore, prefix: str
    ) -> None:
        """Each live key once, in order, whatever the size of a page; a deleted one not at all."""
        names = ["a/1", "a/10", "a/2", "a+b", "b c", "e"]
        for name in names:
            put(store, f"{prefix}{name}", name.encode())
        put(store, f"{prefix}d")
        store.mark_deleted(f"{prefix}d")

        found = walk(pages_of_two.keys_page, prefix)

        assert [entry.key for entry in found] == [f"{prefix}{name}" for name in sorted(names)]
        assert [entry.size_bytes for entry in found] == [len(name) for name in sorted(names)]
        assert walk(store.keys_page, f"{prefix}none") == []

    def test_every_version_and_marker_is_listed_once(
        self, store: ObjectStore, pages_of_two: ObjectStore, prefix: str
    ) -> None:
        """Whatever the size of a page; of each key one entry is the latest, and it comes first."""
        refs = [put(store, f"{prefix}{name}") for name in "abcde"]
        markers = [store.mark_deleted(ref.key) for ref in refs[1:4]]

        found = walk(pages_of_two.versions_page, prefix)

        assert sorted(entry.version_id for entry in found) == sorted(
            [ref.version_id or "" for ref in refs] + [marker or "" for marker in markers]
        )
        assert sorted(e.version_id for e in found if e.is_delete_marker) == sorted(m or "" for m in markers)
        assert [entry.key for entry in found] == sorted(entry.key for entry in found)
        assert [entry.is_latest for entry in _of(found, refs[1].key)] == [True, False]
        assert [entry.is_delete_marker for entry in _of(found, refs[1].key)] == [True, False]

    # Deleting and bringing back.

    def test_a_delete_leaves_every_version(self, store: ObjectStore, prefix: str) -> None:
        """A deleted object is missing by its name, and whole by its version."""
        ref = put(store, f"{prefix}a", b"content")

        marker = store.mark_deleted(ref.key)

        assert marker
        assert marker != ref.version_id
        with pytest.raises(Missing):
            store.head(ref.key)
        assert store.head(ref.key, ref.version_id).checksum == ref.checksum
        assert read(store, ref) == b"content"

    def test_nothing_is_deleted_where_no_versions_are_kept(self, prefix: str) -> None:
        """In a bucket without versions a delete would be for ever: it is refused, and nothing happens."""
        store = self.unversioned()
        store.put_new(f"{prefix}a", InMemory(b"content"), checksum_of(b"content"))

        with pytest.raises(NotVersioned):
            store.mark_deleted(f"{prefix}a")

        assert not store.keeps_versions()
        assert [entry.key for entry in walk(store.keys_page, prefix)] == [f"{prefix}a"]

    def test_an_object_without_a_version_is_no_answer(self, prefix: str) -> None:
        """What has no version id cannot be referenced."""
        store = self.unversioned()
        store.put_new(f"{prefix}a", InMemory(b"content"), checksum_of(b"content"))

        with pytest.raises(NotVersioned):
            store.head(f"{prefix}a")

    def test_a_recorded_version_comes_back(self, store: ObjectStore, prefix: str) -> None:
        """A copy onto its own key makes it live again, over a delete marker, as a new version."""
        self.needs(self.marker_is_absence)
        ref = put(store, f"{prefix}a", b"content")
        store.mark_deleted(ref.key)

        store.copy_version(ref)

        live = store.head(ref.key)
        assert (live.size_bytes, live.checksum) == (ref.size_bytes, ref.checksum)
        assert live.version_id != ref.version_id
        assert walk(store.uploads_page, prefix) == []

    def test_a_copy_never_overwrites(self, store: ObjectStore, prefix: str) -> None:
        """Over a live object it fails, makes no version and leaves nothing behind."""
        ref = put(store, f"{prefix}a", b"content")

        with pytest.raises(AlreadyExists):
            store.copy_version(ref)

        assert store.head(ref.key).version_id == ref.version_id
        assert len(walk(store.versions_page, prefix)) == 1
        assert walk(store.uploads_page, prefix) == []

    def test_a_key_may_be_written_again_after_a_delete(self, store: ObjectStore, prefix: str) -> None:
        """A delete marker is no object: the condition that nothing is there holds."""
        self.needs(self.marker_is_absence)
        first = put(store, f"{prefix}a", b"first")
        store.mark_deleted(first.key)

        second = put(store, f"{prefix}a", b"second")

        assert read(store, second) == b"second"
        assert read(store, first) == b"first"

    # Holds.

    def test_a_hold_is_placed_and_released(self, store: ObjectStore, prefix: str) -> None:
        """Of one version, and what it says is what was last asked for."""
        ref = put(store, f"{prefix}a")
        assert ref.version_id is not None
        seen = [store.is_held(ref.key, ref.version_id)]

        for held in (True, False):
            store.set_hold(ref.key, ref.version_id, held=held)
            seen.append(store.is_held(ref.key, ref.version_id))

        assert seen == [False, True, False]

    def test_a_hold_outlasts_a_delete(self, store: ObjectStore, prefix: str) -> None:
        """A version under a delete marker can still be held."""
        ref = put(store, f"{prefix}a")
        assert ref.version_id is not None
        store.mark_deleted(ref.key)

        store.set_hold(ref.key, ref.version_id, held=True)

        assert store.is_held(ref.key, ref.version_id)
        store.set_hold(ref.key, ref.version_id, held=False)

    def test_a_hold_needs_object_lock(self, prefix: str) -> None:
        """Where the bucket has none, that is said; a hold is never taken for placed."""
        store = self.unversioned()
        store.put_new(f"{prefix}a", InMemory(b"content"), checksum_of(b"content"))

        with pytest.raises(Unsupported):
            store.set_hold(f"{prefix}a", "null", held=True)

    def test_the_clock_is_the_one_that_objects_are_dated_by(self, store: ObjectStore, prefix: str) -> None:
        """What is stored now is no older than the clock before it, and no newer than the clock after."""
        before_ms = store.now_ms()
        put(store, f"{prefix}dated")
        [listed] = walk(store.keys_page, prefix)

        assert before_ms <= listed.modified_ms + 1000
        assert listed.modified_ms <= store.now_ms() + 1000

    def test_versions_are_known_to_be_kept(self, store: ObjectStore) -> None:
        """The bucket's own setting, asked anew."""
        assert store.keeps_versions()


def _of(found: Sequence[Entry], key: str) -> list[Entry]:
    return [entry for entry in found if getattr(entry, "key", None) == key]
