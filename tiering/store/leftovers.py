"""Multipart uploads that a dead process left behind: invisible to every listing of objects, and paid for.

Refuses: to know whose an upload is. Another broker's agent may be in the middle of one, so that only age
tells: the caller's limit must be longer than any upload can take.
"""

from __future__ import annotations

from collections.abc import Iterator

from tiering.store.interface import PendingUpload
from tiering.store.patient import PatientStore


def stale_uploads(store: PatientStore, prefix: str, *, initiated_before_ms: int) -> Iterator[PendingUpload]:
    """Those that were begun before `initiated_before_ms`. Looks only."""
    for upload in store.list_uploads(prefix):
        if upload.initiated_ms < initiated_before_ms:
            yield upload


def abort_stale_uploads(
    store: PatientStore, prefix: str, *, initiated_before_ms: int
) -> Iterator[PendingUpload]:
    """Abort each of them; yields it once it is gone."""
    # Listed to the end first: a listing that is paged through while its entries vanish may skip some.
    for upload in tuple(stale_uploads(store, prefix, initiated_before_ms=initiated_before_ms)):
        store.abort_parts(upload.key, upload.upload_id)
        yield upload
