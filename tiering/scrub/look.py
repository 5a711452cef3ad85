"""Looks at the objects of one segment: where they stand, what the store says of them, what their bytes are.

    1  HEAD of the key: the live version, its size and its checksum are the record's; a deep look does without
       where a listing of this run had the version as the live one
    2  where that says otherwise, or 404, a listing of the key says what is there
    3  (deep) the bytes of the version that the record names, each batch, against their checksum
    4  what was found wrong is looked at a second time, from 1, with a HEAD; only that counts

Owns this order. Refuses to call anything missing because a request failed: an error of the store is
Inconclusive, whatever its words. It knows no newer metadata: `judge` holds its findings against that.

Memory: a piece of the stream and a batch for a `.log`; an `.aux` or a `.json` whole, up to AUX_BYTES_MAX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from rules.identity import ObjectRef
from rules.words import ScrubDepth
from tiering.log.segment import Compaction, scan_steps
from tiering.outcome import Failed, Inconclusive, Outcome, Problem, Verified
from tiering.scrub.contents import aux_problems, json_problems, log_problems
from tiering.scrub.damage import Checked, Damage, Reason, problem
from tiering.scrub.presence import absence
from tiering.scrub.stream import whole, windows_of
from tiering.segments.records import SegmentRecord
from tiering.store.aux_file import SIZE_BYTES_MAX as AUX_BYTES_MAX
from tiering.store.errors import (
    DeadlinePassed,
    Missing,
    NotVersioned,
    StoreError,
    Throttled,
    Transient,
    Unavailable,
)
from tiering.store.interface import CHECKSUM_ALGORITHM, ListedVersion, Stored, checksum_text, crc64
from tiering.store.keys import ObjectKind

NO_ANSWER = (Unavailable, DeadlinePassed, Transient, Throttled)
VERSIONS_MAX = 1000  # of one key; Seawall itself makes a few


class Objects(Protocol):
    """The bucket, read only."""

    def head(self, key: str, version_id: str | None = None) -> Stored: ...

    def stream(self, key: str, version_id: str, start: int, end: int) -> Iterator[memoryview]: ...

    def list_versions(self, prefix: str) -> Iterator[ListedVersion]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What a look at a segment came to. `no_answer`: the store did not answer at all, for the last object.

    `by` is the worker that looked; None: this process.
    """

    checked: tuple[Checked, ...]
    read_bytes: int
    no_answer: bool = False
    by: str | None = None

    @property
    def is_untold(self) -> bool:
        """Whether of any of its objects it cannot be told."""
        return any(isinstance(each.outcome, Inconclusive) for each in self.checked)


@dataclass(frozen=True, slots=True)
class _Seen:
    outcome: Outcome
    reason: Reason | None = None
    no_answer: bool = False


@dataclass(slots=True)
class _Count:
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Look:
    """One object to look at, and the count of what is read for it."""

    record: SegmentRecord
    kind: ObjectKind
    ref: ObjectRef
    depth: ScrubDepth
    read: _Count


class Looker:
    """For any number of threads. `pace` is told of bytes that came; it waits, or raises to give all up."""

    def __init__(self, objects: Objects, pace: Callable[[int], None]) -> None:
        self._objects = objects
        self._pace = pace

    def look(
        self, record: SegmentRecord, depth: ScrubDepth, is_live: Callable[[str], bool] = lambda _: False
    ) -> Looked:
        """Every object of a segment. `record` is finished, and has all three.

        `is_live`: a listing just now had the key's version by the record as the live one, of its size.
        """
        read = _Count()
        found: list[Checked] = []
        no_answer = False
        for kind, ref in objects_of(record):
            key = f"{record.key_stem}.{kind.value}"
            looks = 0
            if no_answer:
                why = "not asked for: the store did not answer for the object before it"
                seen = _Seen(Inconclusive(why), Reason.STORE)
            elif ref is None or ref.version_id is None or ref.key != key:
                named = "no object" if ref is None else f"{ref.key} at version {ref.version_id}"
                seen = _Seen(Failed((problem(Damage.UNNAMED, f"its record names {named}"),)))
            else:
                look = _Look(record, kind, ref, depth, read)
                seen, looks = self._twice(look, is_live=depth is ScrubDepth.DEEP and is_live(key))
                no_answer = seen.no_answer
            found.append(
                Checked(
                    record=record,
                    kind=kind,
                    key=key,
                    ref=ref,
                    depth=depth,
                    outcome=seen.outcome,
                    reason=seen.reason,
                    looks=looks,
                )
            )
        return Looked(checked=tuple(found), read_bytes=read.size_bytes, no_answer=no_answer)

    def absence(self, ref: ObjectRef) -> Problem | None:
        """What is wrong with where it stands, by a listing of its key now. Raises StoreError."""
        return absence(ref, self.versions(ref.key))

    def versions(self, key: str) -> list[ListedVersion]:
        """Those of one key, and of no other that begins alike; the latest first."""
        found: list[ListedVersion] = []
        for each in self._objects.list_versions(key):
            if each.key != key or len(found) == VERSIONS_MAX:
                break  # a listing is in order of keys, and no key stands before its own beginning
            found.append(each)
        return found

    def _twice(self, look: _Look, *, is_live: bool) -> tuple[_Seen, int]:
        """What counts of it, and how many looks that took."""
        first = self._once(look, is_live=is_live)
        if is_live and isinstance(first.outcome, Inconclusive) and not first.no_answer:
            first = self._once(look)  # the listing may be out of date: ask what is there now
        if not isinstance(first.outcome, Failed):
            return first, 1
        second = self._once(look)
        if isinstance(second.outcome, Inconclusive):
            before = "; ".join(each.detail for each in first.outcome.problems)
            why = f"{second.outcome.reason}; a first look had found: {before}"
            return replace(second, outcome=Inconclusive(why)), 2
        return second, 2

    def _once(self, look: _Look, *, is_live: bool = False) -> _Seen:
        try:
            return self._judged(look, is_live=is_live)
        except StoreError as failed:
            why = str(failed).splitlines()[0]
            return _Seen(Inconclusive(why), Reason.STORE, no_answer=isinstance(failed, NO_ANSWER))

    def _judged(self, look: _Look, *, is_live: bool) -> _Seen:
        ref = look.ref
        if ref.checksum_algorithm != CHECKSUM_ALGORITHM:
            why = f"its checksum is {ref.checksum_algorithm}, which this Seawall cannot compute"
            return _Seen(Inconclusive(why), Reason.ALGORITHM)
        problems: list[Problem] = []
        if not is_live:
            stored = self._stored(ref)
            if stored is None or stored.version_id != ref.version_id:
                wrong = self.absence(ref)
                if wrong is None:
                    why = "its listing has the version that its record names, and its HEAD has not"
                    return _Seen(Inconclusive(why), Reason.UNSETTLED)
                return _Seen(Failed((wrong,)))
            problems += _stated(ref, stored)
        if look.depth is ScrubDepth.DEEP and not any(each.kind == Damage.SIZE.value for each in problems):
            problems += self._contents(look)
        return _Seen(Failed(tuple(problems)) if problems else Verified())

    def _stored(self, ref: ObjectRef) -> Stored | None:
        """What the store says of the live version; None where there is none that it could name."""
        try:
            return self._objects.head(ref.key)
        except (Missing, NotVersioned):
            return None

    def _contents(self, look: _Look) -> list[Problem]:
        """What is wrong with the bytes. Raises StoreError."""
        record, ref, read = look.record, look.ref, look.read
        coming = _Coming(self._bytes(ref, 0, ref.size_bytes, read))
        match look.kind:
            case ObjectKind.LOG:
                found = scan_steps(
                    windows_of(coming, ref.size_bytes),
                    size_bytes=ref.size_bytes,
                    reread=lambda at, size: whole(self._bytes(ref, at, at + size, read)),
                    base_offset=record.base_offset,
                    limit_offset=record.end_offset,
                    compaction=Compaction.NEVER,  # what was ever compacted is not tiered
                )
                coming.drain()  # where a scan stops early, the checksum is of all the bytes
                inside = list(log_problems(record, found))
            case ObjectKind.AUX:
                inside = list(aux_problems(record, coming.whole()))
            case ObjectKind.JSON:
                inside = list(json_problems(record, coming.whole()))
        if coming.checksum == ref.checksum:
            return inside
        detail = f"{ref.checksum} by the record, {coming.checksum} of the bytes that came"
        return [problem(Damage.CHECKSUM, detail), *inside]

    def _bytes(self, ref: ObjectRef, start: int, end: int, read: _Count) -> Iterator[memoryview]:
        assert ref.version_id is not None
        for piece in self._objects.stream(ref.key, ref.version_id, start, end):
            read.size_bytes += len(piece)
            self._pace(len(piece))
            yield piece


def size_of(record: SegmentRecord) -> int:
    """What a deep look at the segment reads, where nothing is wrong."""
    return sum(ref.size_bytes for _, ref in record.objects.present())


def objects_of(record: SegmentRecord) -> tuple[tuple[ObjectKind, ObjectRef | None], ...]:
    """The large one last: what the others say of a store that is away costs little."""
    objects = record.objects
    return ((ObjectKind.JSON, objects.json), (ObjectKind.AUX, objects.aux), (ObjectKind.LOG, objects.log))


def _stated(ref: ObjectRef, stored: Stored) -> Iterator[Problem]:
    """What the store says of the version, against the record."""
    if stored.size_bytes != ref.size_bytes:
        detail = f"{ref.size_bytes} bytes by the record, {stored.size_bytes} by the store"
        yield problem(Damage.SIZE, detail)
    if stored.checksum != ref.checksum:
        detail = f"{ref.checksum} by the record, {stored.checksum} by the store"
        yield problem(Damage.CHECKSUM, detail)


class _Coming:
    """Pieces on their way, and the checksum of what has come."""

    def __init__(self, pieces: Iterator[memoryview]) -> None:
        self._pieces = pieces
        self._crc = 0

    def __iter__(self) -> Iterator[memoryview]:
        for piece in self._pieces:
            self._crc = crc64(piece, self._crc)
            yield piece

    def drain(self) -> None:
        for _ in self:
            pass

    def whole(self) -> bytes:
        """All of them as one; of what is too large to be anything of ours, the beginning."""
        kept = bytearray()
        for piece in self:
            if len(kept) <= AUX_BYTES_MAX:
                kept += piece
        return bytes(kept)

    @property
    def checksum(self) -> str:
        return checksum_text(self._crc)
