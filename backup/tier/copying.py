"""Puts recorded versions back onto their keys, many at once, inside of the store.

One object is one request of `copy_version`; the store compares the checksum on record with what it has
written, and says the new version's id. Where the answer was lost, or the key is taken, the store is asked
what is there (`settle`): the very bytes on record are the answer, whoever put them there.

Of a segment the `.log` comes first and the `.json` last, as an upload has them: a bucket alone then never
tells of a copy that is not whole.

Owns the threads and the undoing. Refuses to undo what it did not put there.

Invariant: `put_back` returns all references, or raises with every object that it made live under a marker
again; unless the store could not be reached, or the process ended: then the next run goes on from there.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial

from backup.errors import MarkerTakenForObject, OverlapsLive, PieceUnreadable
from backup.tier.check import PieceState, ToCopy
from backup.tier.ports import Objects, Ports, Progress
from rules.identity import ObjectRef
from tiering.errors import StatedError
from tiering.segments.records import SegmentObjects
from tiering.store.errors import (
    AlreadyExists,
    ChecksumRefused,
    DeadlinePassed,
    Missing,
    StoredDiffers,
    StoreError,
    Throttled,
    Transient,
    Unavailable,
)
from tiering.store.interface import Stored
from workers.consumer.tasks import Tasks

ORDER = ("log", "aux", "json")
TICK_S = 60.0
_OUTAGE = (Unavailable, Transient, Throttled, DeadlinePassed)
_OPEN = (AlreadyExists, Unavailable, Transient, DeadlinePassed)


class Copying:
    """One run's copies."""

    def __init__(self, ports: Ports, pieces: Sequence[PieceState]) -> None:
        self._ports = ports
        self._pieces = [each for each in pieces if not each.is_published]
        self._lock = threading.Lock()
        self._made: list[str] = []  # keys that this run made live
        self._stopping = threading.Event()
        left = [one.source.size_bytes for each in self._pieces for one in each.to_copy]
        self._total, self._total_bytes = len(left), sum(left)
        self._done = self._done_bytes = 0

    @property
    def made(self) -> int:
        """How many objects this run made live."""
        return len(self._made)

    def put_back(self) -> Mapping[str, SegmentObjects]:
        """Of each piece that was not published yet, by its segment's id, where its objects are now."""
        ended = self._all_ended()
        failures = [each for each in ended.values() if isinstance(each, BaseException)]
        try:
            for failure in sorted(failures, key=_how_grave):
                raise failure
        except _OUTAGE:
            raise  # the same may do in an hour; what is there is found there
        except StatedError:
            self.undo()
            raise
        return {name: each for name, each in ended.items() if isinstance(each, SegmentObjects)}

    def undo(self) -> None:
        """A marker over each object that this run made live, the `.json` first; as far as that can be had."""
        for key in reversed(self._made):
            try:
                self._ports.objects.mark_deleted(key)
            except StoreError:
                return  # what went wrong before matters more; without a record it counts for nothing
        self._made.clear()

    def _all_ended(self) -> dict[str, SegmentObjects | BaseException]:
        """What each piece came to. The first that fails stops the others at their next object."""
        ended: dict[str, SegmentObjects | BaseException] = {}
        with Tasks[str, SegmentObjects | BaseException](threads=self._ports.workers) as tasks:
            for each in self._pieces:
                tasks.submit(each.piece.record.segment_id, partial(self._tried, each))
            try:
                while tasks.out:
                    ended.update(tasks.collect(TICK_S))
            finally:
                self._stopping.set()
        return ended

    def _tried(self, state: PieceState) -> SegmentObjects | BaseException:
        try:
            return self._piece(state)
        except BaseException as failed:  # noqa: BLE001 raised when all have ended
            self._stopping.set()
            return failed

    def _piece(self, state: PieceState) -> SegmentObjects:
        to_copy = {each.kind: each for each in state.to_copy}
        found: dict[str, ObjectRef] = {}
        present = dict(state.piece.record.objects.present())
        for kind in (each for each in ORDER if each in present):
            if self._stopping.is_set():
                raise _Stopped
            ref = present[kind]
            found[kind] = self._object(to_copy[kind], state) if kind in to_copy else ref
        return SegmentObjects(**found)

    def _object(self, wanted: ToCopy, state: PieceState) -> ObjectRef:
        source = wanted.source
        if wanted.is_taken:
            put_back, was_made = self._found(source, state), False
        else:
            self._ports.pace(source.size_bytes)
            put_back, was_made = copied(self._ports.objects, source)
        with self._lock:
            if was_made:
                self._made.append(source.key)
            self._done, self._done_bytes = self._done + 1, self._done_bytes + source.size_bytes
            progress = Progress(
                objects=self._done,
                objects_total=self._total,
                size_bytes=self._done_bytes,
                size_bytes_total=self._total_bytes,
            )
            self._ports.on_progress(progress)
        return put_back

    def _found(self, source: ObjectRef, state: PieceState) -> ObjectRef:
        """What is on the key already, if it is this very object."""
        live = self._ports.objects.head(source.key)
        if (live.size_bytes, live.checksum) != (source.size_bytes, source.checksum):
            piece = state.piece
            why = f"{source.key} is another object with checksum {live.checksum}"
            raise OverlapsLive(log=piece.record.log, start=piece.start, end=piece.end, why=why)
        return source._replace(version_id=live.version_id)


class _Stopped(Exception):
    """Another piece failed first."""


def _how_grave(failure: BaseException) -> tuple[bool, bool]:
    """What is for good comes first, and the mere stopping of others last, if it is all."""
    return isinstance(failure, _Stopped), isinstance(failure, _OUTAGE)


def copied(objects: Objects, source: ObjectRef) -> tuple[ObjectRef, bool]:
    """A recorded version, live on its key again, and whether it was us who put it there."""
    try:
        version_id = objects.copy_version(source)
    except _OPEN as refused:
        live = _live(objects, source.key)
        if live is None and isinstance(refused, AlreadyExists):
            raise MarkerTakenForObject(
                bucket=refused.bucket, key=refused.key, operation=refused.operation, why=refused.why
            ) from refused
        if live is None or (live.size_bytes, live.checksum) != (source.size_bytes, source.checksum):
            raise
        return source._replace(version_id=live.version_id), False
    except (ChecksumRefused, StoredDiffers) as other:
        raise PieceUnreadable(key=source.key, version_id=source.version_id, why=other.why) from other
    except Missing as gone:
        why = f"the bucket has it not any more ({gone.why})"
        raise PieceUnreadable(key=source.key, version_id=source.version_id, why=why) from gone
    if version_id is None:
        live = objects.head(source.key)
        if (live.size_bytes, live.checksum) != (source.size_bytes, source.checksum):
            objects.mark_deleted(source.key)
            why = f"what was copied has checksum {live.checksum}, {source.checksum} is on record"
            raise PieceUnreadable(key=source.key, version_id=source.version_id, why=why)
        version_id = live.version_id
    return source._replace(version_id=version_id), True


def _live(objects: Objects, key: str) -> Stored | None:
    try:
        return objects.head(key)
    except StoreError:
        return None  # then the first failure is the one to report
