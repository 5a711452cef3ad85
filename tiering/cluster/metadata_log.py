"""Follows a host's `__cluster_metadata-0` directory: an image of the cluster, and every change on the way.

Each `poll` reads on from where the last one ended and returns steps, in order:

    Loaded    the image as of an offset; from there on changes come one by one. `unseen` are offsets whose
              records will never come, as a snapshot overtook us: only what they led to is known
    Change    one record, with its offset, controller epoch and time; those of a metadata transaction come
              once it has ended, those of an aborted one never
    Rewound   the log was truncated: every Change that was decided at or past this offset is withdrawn

Owns the position in the directory. It starts at the newest snapshot, or at a `Place` that an earlier run has
kept, and survives what the broker does to these files: rolling, deleting segments behind a snapshot,
replacing everything by a snapshot that it fetched, truncating what was not committed.

Refuses to say what is committed: no file does (KAFKA_FACTS 16). A consumer that needs to know asks for the
quorum's high watermark, and keeps what was decided below it, whatever is Rewound.

Invariant: the steps of all polls, applied in order, give `image`. Before reading on, the last batch read is
looked at again; where it is no longer what it was, or no longer there, everything is read anew from a
snapshot and the histories of both are compared (`lineage`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from tiering.cluster.fold import Decider, fold
from tiering.cluster.image import Change, ClusterImage
from tiering.cluster.lineage import cut, fork, joined
from tiering.cluster.metadata_files import (
    MetadataBatch,
    MetadataListing,
    SnapshotName,
    header_at,
    list_metadata_directory,
    read_batches,
    read_snapshot,
)
from tiering.log.checkpoints import EpochStart
from tiering.log.directory import Segment
from tiering.log.errors import LogFormatError
from tiering.log.framed import SkipTally

CHANGES_MAX = 20_000  # of one poll: the rest comes with the next
EPOCHS_KEPT_MAX = 64  # controller epochs of a Place: one for each election of a controller
RELOADS_MAX = 3  # in one poll; files may vanish under a reader, but not for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """How far a consumer has come, and in which history: what it keeps to go on after a restart."""

    next_offset: int
    epochs: tuple[EpochStart, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """The image to go on from. `unseen` is a half-open range of offsets.

    With an `unseen` range, whatever was given before and was not yet known to be committed can no longer be
    vouched for: what replaced it, if anything did, is in that range.
    """

    image: ClusterImage
    unseen: tuple[int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewound:
    """Changes decided at or past this offset are withdrawn; those that replace them follow."""

    to_offset: int


Step: TypeAlias = Loaded | Change | Rewound


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    """What one poll came to. `stopped`: why reading ended before the end of the files, if it did."""

    steps: tuple[Step, ...]
    caught_up: bool
    stopped: str | None = None
    grown_at_ms: int | None = None  # when the broker last wrote to the log, by this host's clock


@dataclass(slots=True, kw_only=True)
class _Cursor:
    """Where reading goes on, and the last batch that was read, to be known again."""

    path: Path
    position: int
    next_offset: int
    last_batch: tuple[Path, int, bytes] | None = None


class _ReadAnew(Exception):
    """What was read is not what stands there now."""


class MetadataLogFollower:
    """One reader of one directory, for one thread. Read-only; it holds no file open between polls."""

    def __init__(self, directory: Path, *, resume: Place | None = None) -> None:
        self.directory = directory
        self.skipped = SkipTally()
        self._image = ClusterImage()
        self._cursor: _Cursor | None = None
        self._epochs: tuple[EpochStart, ...] = resume.epochs if resume else ()
        self._given_to: int | None = resume.next_offset if resume else None
        self._quiet_until: int | None = None  # below it changes are folded, but were given before
        self._decider = Decider()
        self._history: list[EpochStart] = []  # as read since the last load
        self._steps: list[Step] = []

    @property
    def image(self) -> ClusterImage:
        return self._image

    @property
    def place(self) -> Place:
        """What to keep: everything below has been given, nothing at or past it."""
        return Place(next_offset=self._given_to or 0, epochs=self._epochs)

    def poll(self) -> Poll:
        """Read on. Never raises for what stands, or does not stand, in the directory."""
        self._steps = []
        stopped: str | None = None
        caught_up = False
        grown_at_ms: int | None = None
        for _ in range(RELOADS_MAX):
            try:
                listing = list_metadata_directory(self.directory)
                grown_at_ms = max((_written_at_ms(each) for each in listing.segments[-1:]), default=None)
                caught_up, stopped = self._read_on(listing)
                break
            except (_ReadAnew, FileNotFoundError) as moved:
                self._cursor = None
                stopped = str(moved)
            except (OSError, LogFormatError) as unreadable:
                stopped = str(unreadable)
                break
        return Poll(steps=tuple(self._steps), caught_up=caught_up, stopped=stopped, grown_at_ms=grown_at_ms)

    def _read_on(self, listing: MetadataListing) -> tuple[bool, str | None]:
        if self._cursor is not None and not self._is_still_there(self._cursor, listing):
            self._cursor = None
        cursor = self._cursor or self._load(listing)
        self._cursor = cursor
        for segment in listing.segments:
            if segment.path != cursor.path:
                continue
            for batch in read_batches(cursor.path, start=cursor.position):
                if isinstance(batch, LogFormatError):
                    # The newest batch may be half written. The same, said of an older segment, is damage.
                    return not segment.is_closed, f"{segment.path.name}: {batch}"
                if batch.base_offset != cursor.next_offset:
                    why = (
                        f"{segment.path.name}: batch at offset {batch.base_offset}, not {cursor.next_offset}"
                    )
                    return False, why
                self._take(batch)
                if len(self._steps) >= CHANGES_MAX:
                    return False, None
            if segment.is_closed:
                cursor = self._cursor = self._next_segment(cursor, segment)
        return True, None

    def _next_segment(self, cursor: _Cursor, segment: Segment) -> _Cursor:
        if segment.end_offset != cursor.next_offset:
            raise _ReadAnew(f"{segment.path.name} ends at {cursor.next_offset}, not {segment.end_offset}")
        path = segment.path.with_name(f"{segment.end_offset:020d}.log")
        return replace(cursor, path=path, position=0)

    def _is_still_there(self, cursor: _Cursor, listing: MetadataListing) -> bool:
        if cursor.path not in {segment.path for segment in listing.segments}:
            return False
        if cursor.last_batch is None:
            return True
        path, position, header = cursor.last_batch
        return header_at(path, position) == header

    def _take(self, batch: MetadataBatch) -> None:
        """Fold a batch and give what is new of it; the cursor stands behind it afterwards."""
        cursor = self._cursor
        assert cursor is not None
        cursor.position, cursor.next_offset = batch.end_position, batch.next_offset
        cursor.last_batch = (cursor.path, batch.position, batch.header)
        fresh = [change for change in batch.changes if change.offset >= self._image.end_offset]
        if not fresh:
            return
        if not self._history or self._history[-1].epoch < batch.epoch:
            self._history.append(EpochStart(batch.epoch, fresh[0].offset))
            self._compare()
        if self._quiet_until is not None:
            quiet_until = self._quiet_until
            self._fold_quietly([change for change in fresh if change.offset < quiet_until])
            fresh = [change for change in fresh if change.offset >= quiet_until]
            if batch.next_offset >= quiet_until:
                self._arrive()
        if fresh:
            self._give(fresh)

    def _fold_quietly(self, changes: list[Change]) -> None:
        self._image = fold(self._image, changes)
        for change in changes:
            self._decider.take(change)

    def _give(self, changes: list[Change]) -> None:
        self._image = fold(self._image, changes)
        self._count_skipped(changes)
        for change in changes:
            self._steps += self._decider.take(change)
        self._note_given()
        self._epochs = joined(self._epochs, self._history, keep_max=EPOCHS_KEPT_MAX)

    def _note_given(self) -> None:
        """All below is given, nothing at or past it: what waits for its transaction's end is not."""
        undecided = self._decider.undecided
        self._given_to = undecided[0].offset if undecided else self._image.end_offset

    def _compare(self) -> None:
        """Was the consumer given what stands here? If not, go back to the fork.

        Before the end only an epoch can tell that the consumer has not heard of: those that it has heard of
        and that are missing here may follow.
        """
        given_to = self._quiet_until
        if given_to is None or not self._history or not self._epochs:
            return
        is_read = self._image.end_offset >= given_to
        if not is_read and self._history[-1].epoch <= self._epochs[-1].epoch:
            return
        parted = fork(self._epochs, given_to, cut(self._history, given_to), given_to)
        if parted < given_to:
            self._steps.append(Rewound(to_offset=parted))
            self._given_to, self._epochs = parted, cut(self._epochs, parted)
            raise _ReadAnew(f"the log differs from offset {parted} on")

    def _arrive(self) -> None:
        """The image is where the consumer is."""
        self._compare()
        self._quiet_until = None
        self._note_given()
        self._epochs = joined(self._epochs, self._history, keep_max=EPOCHS_KEPT_MAX)
        self._steps.append(Loaded(image=self._image, unseen=None))

    def _load(self, listing: MetadataListing) -> _Cursor:
        """Start anew at the best snapshot, or at offset 0 of a log that has none yet."""
        start, image = self._base(listing)
        self._image, self._decider = image, Decider()
        self._history = [EpochStart(image.epoch, image.end_offset - 1)] if image.end_offset else []
        given_to = self._given_to
        self._cursor = cursor = _Cursor(path=start.path, position=0, next_offset=start.base_offset)
        if given_to is not None and given_to >= image.end_offset:
            self._quiet_until = given_to
            self._compare()
            if given_to == image.end_offset:
                self._arrive()
        else:
            unseen = None if given_to is None else (given_to, image.end_offset)
            self._quiet_until = None
            self._given_to, self._epochs = image.end_offset, tuple(self._history)
            self._steps.append(Loaded(image=image, unseen=unseen))
        return cursor

    def _base(self, listing: MetadataListing) -> tuple[Segment, ClusterImage]:
        """The segment to read from and the image to fold onto, at or before what was given if that can be."""
        refused: str | None = None
        for snapshot in self._by_preference(listing):
            start = _segment_at(listing, snapshot.end_offset if snapshot else 0)
            if start is None:
                continue
            try:
                return start, self._image_of(snapshot) if snapshot else ClusterImage()
            except LogFormatError as damaged:
                refused = f"{snapshot.path.name if snapshot else start.path.name}: {damaged}"
        raise FileNotFoundError(refused or f"neither a snapshot nor a log from offset 0 in {self.directory}")

    def _by_preference(self, listing: MetadataListing) -> Iterator[SnapshotName | None]:
        """The snapshots to try, best first; None is the beginning of a log that still has its beginning."""
        newest_first = listing.snapshots[::-1]
        given_to = self._given_to
        if given_to is not None:
            yield from (name for name in newest_first if name.end_offset <= given_to)
            yield None
            newest_first = tuple(name for name in newest_first if name.end_offset > given_to)
        yield from newest_first
        yield None

    def _image_of(self, snapshot: SnapshotName) -> ClusterImage:
        changes = read_snapshot(snapshot)
        if self._given_to is None or snapshot.end_offset > self._given_to:
            self._count_skipped(changes)
        image = fold(ClusterImage(), changes)
        return replace(image, end_offset=snapshot.end_offset, epoch=snapshot.epoch)

    def _count_skipped(self, changes: Iterable[Change]) -> None:
        for _ in self.skipped.sift(change.record for change in changes):
            pass


def _written_at_ms(segment: Segment) -> int:
    return segment.path.stat().st_mtime_ns // 1_000_000


def _segment_at(listing: MetadataListing, offset: int) -> Segment | None:
    """The segment that holds `offset`, or that it would be appended to."""
    return next((each for each in reversed(listing.segments) if each.base_offset <= offset), None)
