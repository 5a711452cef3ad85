"""Whether an object is in the store: by asking the store, never by what a request seemed to come to.

After every write its size and checksum are read back (DESIGN, T3). An answer may be lost after the store did
its work; the next attempt then meets the object that is already there, or a multipart upload that is gone.
Both look like failures. An object with our size and our checksum, under a key that holds an id of this very
attempt, is ours whoever's answer was lost.

Invariant: an ObjectRef made here has the size and checksum that were asked for, and the store said so.
"""

from __future__ import annotations

from collections.abc import Callable

from rules.identity import ObjectRef
from tiering.store.errors import (
    AlreadyExists,
    DeadlinePassed,
    Missing,
    StoredDiffers,
    StoreError,
    Transient,
    Unavailable,
)
from tiering.store.interface import CHECKSUM_ALGORITHM, Stored
from tiering.store.patient import PatientStore

# After these the store may, or may not, have done what it was asked for.
_OPEN = (AlreadyExists, Missing, Unavailable, Transient, DeadlinePassed)


def settle(
    store: PatientStore, key: str, *, size_bytes: int, checksum: str, write: Callable[[], str | None]
) -> ObjectRef:
    """Run `write`, which gives a version id where it learns one, and read back what came of it."""
    try:
        version_id = write()
    except _OPEN:
        stored = _found(store, key)
        if stored is None or not _is(stored, size_bytes, checksum):
            raise
        return _ref(key, stored, checksum)
    stored = store.head(key, version_id)
    if not _is(stored, size_bytes, checksum):
        why = (
            f"{stored.size_bytes} bytes with checksum {stored.checksum} are there, "
            f"not {size_bytes} with {checksum}"
        )
        raise StoredDiffers(bucket=store.bucket, key=key, operation="read back", why=why)
    return _ref(key, stored, checksum)


def restore(store: PatientStore, source: ObjectRef) -> ObjectRef:
    """Make a recorded version the live object again: a copy inside the store, read back.

    Where the live object has those very bytes already, that is the answer. Any other is AlreadyExists.
    """
    return settle(
        store,
        source.key,
        size_bytes=source.size_bytes,
        checksum=source.checksum,
        write=lambda: store.copy_version(source),
    )


def _found(store: PatientStore, key: str) -> Stored | None:
    try:
        return store.head(key)
    except StoreError:
        return None  # then the first failure is the one to report


def _is(stored: Stored, size_bytes: int, checksum: str) -> bool:
    return stored.size_bytes == size_bytes and stored.checksum == checksum


def _ref(key: str, stored: Stored, checksum: str) -> ObjectRef:
    return ObjectRef(
        key=key,
        size_bytes=stored.size_bytes,
        checksum_algorithm=CHECKSUM_ALGORITHM,
        checksum=checksum,
        version_id=stored.version_id,
    )
