"""Each segment's copy of one log, and what the bucket still has of it: the values, and what can be used.

    recorded version there, and on top of its key    live: nothing has to be done about it
    recorded version there, under something else      it can be copied onto its key, and read by its id
    another version of the recorded size there        the same, if the store confirms the recorded checksum
    none                                              gone: the lifecycle, or somebody, took it

Owns these cases, and what stood where at a time: a version counts from its own date to that of what came on
top of it. Refuses to ask anybody.

Invariant: `sources` names versions that were in the listing, and a whole set of them, or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from rules.identity import LogId, ObjectRef
from tiering.segments.lineage import Epochs
from tiering.segments.records import LogRecord, SegmentObjects, SegmentRecord, SegmentState
from tiering.store.interface import ListedVersion
from tiering.store.keys import ObjectKind

NEEDED = (ObjectKind.LOG, ObjectKind.AUX)  # a `.json` is made anew by whoever needs it


class Told(Enum):
    """Who tells of a copy."""

    FOLLOWED = "followed"  # the topic of metadata, as its readers follow it
    FENCED = "fenced"  # the topic, behind a later leader's claim: its bytes may be the log's all the same
    BUCKET = "bucket"  # only its `.json`: the topic has forgotten it, or was lost


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One key: its versions and markers, the latest first; none if there never was anything."""

    versions: tuple[ListedVersion, ...] = ()

    @property
    def top(self) -> ListedVersion | None:
        return self.versions[0] if self.versions else None

    @property
    def top_id(self) -> str | None:
        return self.versions[0].version_id if self.versions else None

    @property
    def live(self) -> ListedVersion | None:
        """What whoever asks for the key is given."""
        return self.live_at(None)

    def live_at(self, at_ms: int | None) -> ListedVersion | None:
        """The same at a time, as far as its versions are still there."""
        found = next((each for each in self.versions if at_ms is None or each.modified_ms <= at_ms), None)
        return None if found is None or found.is_delete_marker else found

    def version(self, version_id: str | None, size_bytes: int) -> ListedVersion | None:
        return next((each for each in self._of_size(size_bytes) if each.version_id == version_id), None)

    def other(self, size_bytes: int) -> ListedVersion | None:
        """The latest version of this size."""
        return next(iter(self._of_size(size_bytes)), None)

    def _of_size(self, size_bytes: int) -> list[ListedVersion]:
        return [each for each in self.versions if not each.is_delete_marker and each.size_bytes == size_bytes]


NOTHING_STORED = StoredObject()


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One attempt that was finished once, and its objects by kind (`log`, `aux`, `json`)."""

    record: SegmentRecord
    told: Told
    stored: Mapping[str, StoredObject] = field(default_factory=dict)

    def of(self, kind: str) -> StoredObject:
        return self.stored.get(kind, NOTHING_STORED)

    @property
    def was_finished(self) -> bool:
        return self.record.objects.log is not None and self.record.objects.aux is not None

    @property
    def counts(self) -> bool:
        """Whether readers take it for coverage."""
        return self.told is Told.FOLLOWED and self.record.state is SegmentState.COPY_FINISHED

    @property
    def is_live(self) -> bool:
        """It counts, and the versions that its record names lie on top of their keys."""
        return self.counts and all(
            self.of(kind).top_id == ref.version_id for kind, ref in self.record.objects.present()
        )

    def sources(self) -> SegmentObjects | None:
        """The versions that it can be had back from; None if a needed one is gone."""
        found: dict[str, ObjectRef] = {}
        for kind, ref in self.record.objects.present():
            source = self._source(kind, ref)
            if source is not None:
                found[kind] = source
            elif ObjectKind(kind) in NEEDED:
                return None
        return SegmentObjects(**found) if self.was_finished else None

    def gone(self) -> tuple[str, ...]:
        """The kinds that are needed and of which no version is left."""
        return tuple(
            kind
            for kind, ref in self.record.objects.present()
            if ObjectKind(kind) in NEEDED and self._source(kind, ref) is None
        )

    def was_live_at(self, at_ms: int) -> bool:
        """Whether its bytes were live then. A `.json` goes first and comes last, so that it alone tells."""
        told_by = "json" if self.of("json").versions else "log"
        return self.of(told_by).live_at(at_ms) is not None

    def _source(self, kind: str, ref: ObjectRef) -> ObjectRef | None:
        stored = self.of(kind)
        found = stored.version(ref.version_id, ref.size_bytes) or stored.other(ref.size_bytes)
        return None if found is None else ref._replace(version_id=found.version_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCatalogue:
    """One log: what its record says, and every copy. `start` to `frontier` is what the tier answers for now.

    `doubts`: why nothing may be planned upon this, in words. `record` is None where the topic has none: only
    copies are known then.
    """

    log: LogId
    topic: str
    record: LogRecord | None
    lineage: Epochs
    start: int
    frontier: int
    recorded_gaps: tuple[tuple[int, int], ...]
    copies: tuple[Copy, ...]
    keeps_versions: bool
    doubts: tuple[str, ...] = ()

    def at(self, at_ms: int) -> LogCatalogue:
        """Only with the copies that were live then, as far as their versions are still there."""
        return replace(self, copies=tuple(each for each in self.copies if each.was_live_at(at_ms)))
