"""What lies in the bucket, by the attempt that put it there.

Owns the grouping by key. Refuses to take for ours what `KeyLayout.parse` does not: it is foreign, and nobody
here ever touches it.

Invariant: each listed object and each pending upload is in exactly one attempt, or foreign, or of a copy that
was committed when it was listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rules.identity import LogId
from tiering.segments.records import SegmentId
from tiering.store.interface import ListedKey, PendingUpload
from tiering.store.keys import KeyLayout, ObjectKind, SegmentKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What is there of one attempt to store one segment. All may be empty: then only a record tells of it."""

    log: LogId
    base_offset: int
    segment_id: SegmentId
    objects: tuple[tuple[ObjectKind, ListedKey], ...] = ()
    uploads: tuple[PendingUpload, ...] = ()

    @property
    def size_bytes(self) -> int:
        return sum(found.size_bytes for _, found in self.objects)

    @property
    def touched_ms(self) -> int | None:
        """When the store last saw something of it, by the store's own time."""
        moments = [found.modified_ms for _, found in self.objects]
        return max(moments + [upload.initiated_ms for upload in self.uploads], default=None)

    def has(self, kind: ObjectKind) -> bool:
        return any(found is kind for found, _ in self.objects)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A key that is not one of ours. `upload_id` if it is a pending upload."""

    key: str
    size_bytes: int
    upload_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A bucket's objects and pending uploads. Of copies that were known to be committed only the sums."""

    attempts: tuple[Attempt, ...]  # by log and base offset
    foreign: tuple[Foreign, ...]
    committed_segments: int = 0
    committed_bytes: int = 0


@dataclass(slots=True)
class _Collected:
    objects: list[tuple[ObjectKind, ListedKey]] = field(default_factory=list)
    uploads: list[PendingUpload] = field(default_factory=list)


def listing(
    layout: KeyLayout,
    objects: Iterable[ListedKey],
    uploads: Iterable[PendingUpload],
    *,
    is_committed: Callable[[SegmentKey], bool] = lambda _: False,
) -> Listing:
    """A listing by attempt. What is committed already is no leftover, and a bucket has millions of it."""
    collected: dict[tuple[LogId, int, str], _Collected] = {}
    foreign: list[Foreign] = []
    committed_segments = committed_bytes = 0

    def attempt_of(segment: SegmentKey) -> _Collected:
        return collected.setdefault((segment.log, segment.base_offset, segment.segment_id), _Collected())

    for found in objects:
        parsed = layout.parse(found.key)
        if parsed is None:
            foreign.append(Foreign(key=found.key, size_bytes=found.size_bytes))
        elif is_committed(parsed[0]):
            committed_segments += parsed[1] is ObjectKind.LOG
            committed_bytes += found.size_bytes
        else:
            attempt_of(parsed[0]).objects.append((parsed[1], found))
    for upload in uploads:
        parsed = layout.parse(upload.key)
        if parsed is None:
            foreign.append(Foreign(key=upload.key, size_bytes=0, upload_id=upload.upload_id))
        else:
            attempt_of(parsed[0]).uploads.append(upload)
    return Listing(
        attempts=tuple(
            Attempt(
                log=log,
                base_offset=base,
                segment_id=SegmentId(segment_id),
                objects=tuple(each.objects),
                uploads=tuple(each.uploads),
            )
            for (log, base, segment_id), each in sorted(collected.items())
        ),
        foreign=tuple(foreign),
        committed_segments=committed_segments,
        committed_bytes=committed_bytes,
    )
