"""The observer of the cluster's metadata log, as this host's broker keeps it.

    run_once    ask the quorum how far the log is committed; read on; say what is committed by now

What was read and is not committed waits, and is dropped if the log is truncated. Where the quorum cannot be
asked, all below the newest snapshot is committed, and the rest waits.

    first start                     the committed state is told as a baseline: nothing has changed yet
    a snapshot swallowed records    evidence_gap, then the difference, coalesced
    what was told is gone           the same: the quorum has lost what it had committed
    the memory cannot be read       evidence_gap, then a baseline

Owns the order: what is found is durable, with the state it leads to, before the first of it is emitted; what
a killed process had not emitted is emitted by the next one first, unchanged. One thread calls `run_once`.

Invariant: every committed record's changes are said, each once by its id, or lie in a gap that is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from audit_engine.observers.errors import SourceSilent
from audit_engine.observers.kept import Kept
from audit_engine.observers.kraft.dated import tell
from audit_engine.observers.kraft.difference import differences
from audit_engine.observers.kraft.memory import FILE_NAME, PLACE, changed_rows, place_row, restored
from audit_engine.observers.kraft.sight import Scope, Sight, between, first
from audit_engine.observers.telling import MEMORY_LOST, TellingObserver, gap_of
from rules.events import Event, EvidenceGap, Source
from tiering.cluster.fold import Draft
from tiering.cluster.image import Change, ClusterImage
from tiering.cluster.interface import Unknown
from tiering.cluster.metadata_files import list_metadata_directory
from tiering.cluster.metadata_log import Loaded, MetadataLogFollower, Place, Rewound, Step
from tiering.cluster.quorum import QuorumMark, QuorumSource
from tiering.cluster.quorum.watermark import NOTHING_KNOWN, committed_below, committed_by_snapshots

KEPT_EVERY_MS = 60_000  # a quiet log costs no write; after a restart so much of it is read again
WAITING_MAX = 200_000  # records that nobody says are committed: above it, reading waits too

OVERTAKEN = "metadata_overtaken"
ROLLED_BACK = "committed_metadata_lost"
READ_OTHERWISE = "metadata_read_otherwise"


@dataclass(slots=True, kw_only=True)
class _Rebase:
    """On the way to a state to begin from: records are taken without a word until it is reached.

    `image` is committed; None until the log is loaded. `told` is what it will be compared with.
    """

    problem: str | None
    detail: str = ""
    image: ClusterImage | None = None
    told: ClusterImage | None = None


@dataclass(slots=True, kw_only=True)
class KraftObserver(TellingObserver):
    """`directory` is `__cluster_metadata-0`, read-only."""

    directory: Path
    quorum: QuorumSource
    cluster_id: str
    scope: Scope = field(default_factory=Scope)
    kept_every_ms: int = KEPT_EVERY_MS
    trouble: str = ""  # why not all of the log is told, if it is not
    _memory: Kept = field(init=False)
    _follower: MetadataLogFollower | None = None
    _told: ClusterImage = field(default_factory=ClusterImage)
    _written: ClusterImage = field(default_factory=ClusterImage)  # what the rows on disk come to
    _written_at_ms: int = 0
    _waiting: list[Change] = field(default_factory=list)
    _committed: int = NOTHING_KNOWN
    _rebase: _Rebase | None = None
    _is_loaded: bool = False  # the follower has said where it begins
    _untold_runs: int = 0  # in a row without the quorum's word
    _is_stopped: bool = False  # the last run could not read on

    def __post_init__(self) -> None:
        self._memory = Kept(self.folder / FILE_NAME, owner=f"the metadata log of cluster {self.cluster_id}")

    @property
    def partition_count(self) -> int:
        """Of how many partitions the state is known."""
        return len(self._told.partitions)

    @property
    def metadata_offset(self) -> int | None:
        """The last offset of the log that is told; None before the baseline."""
        return self._told.end_offset - 1 if self._told.end_offset else None

    def run_once(self) -> int:
        """Ask, read, keep, emit; how many events came of it. Raises SourceSilent for a log it cannot read.

        Once is no trouble: files may go while they are read.
        """
        follower = self._follower or self._begin()
        self._emit()
        mark = self.quorum.mark()
        said = self._turn(mark, (), is_at_end=False)
        stopped: str | None = None
        while len(self._waiting) < WAITING_MAX:
            poll = follower.poll()
            is_rolled_back = any(map(self._is_roll_back, poll.steps))
            said += self._turn(mark, poll.steps, is_at_end=poll.caught_up)
            stopped = None if poll.caught_up else poll.stopped
            if is_rolled_back or poll.caught_up or poll.stopped or not poll.steps:
                break
        self._untold_runs = self._untold_runs + 1 if isinstance(mark, Unknown) else 0
        self.trouble = self._trouble(mark, stopped)
        was_stopped, self._is_stopped = self._is_stopped, stopped is not None
        if stopped is not None and was_stopped:
            raise SourceSilent(what="the metadata log", act="read", why=stopped)
        return said

    def _begin(self) -> MetadataLogFollower:
        """From memory, or anew."""
        loaded = self._memory.load(self.now_ms())
        damage, found = loaded.damage, None
        if damage is None:
            try:
                found = restored(loaded.values)
            except (KeyError, TypeError, ValueError) as odd:
                damage = repr(odd)
        self._pending = loaded.pending
        place: Place | None = None
        if found is None:
            self._rebase = _Rebase(problem=None if damage is None else MEMORY_LOST, detail=damage or "")
        else:
            self._told, place = found
            self._written, self._written_at_ms = self._told, self.now_ms()
        self._follower = MetadataLogFollower(self.directory, resume=place)
        return self._follower

    def _turn(self, mark: QuorumMark | Unknown, steps: Iterable[Step], *, is_at_end: bool) -> int:
        """Take these steps, and say what is committed of all that waits."""
        events: list[Event] = []
        for step in steps:
            if self._is_roll_back(step):
                # What the quorum said of the records that it has lost is no word on those to come.
                self._committed, mark = NOTHING_KNOWN, _NOT_ASKED
            events += self._take(step)
        self._note_committed(mark)
        events += self._tell(is_at_end=is_at_end)
        self._keep(events)
        self._emit()
        return len(events)

    # Steps of the log.

    def _is_roll_back(self, step: Step) -> bool:
        return isinstance(step, Rewound) and step.to_offset < self._reached.end_offset

    @property
    def _reached(self) -> ClusterImage:
        """The committed state that later records go on from."""
        if self._rebase is None:
            return self._told
        return self._rebase.image or ClusterImage()

    def _take(self, step: Step) -> Sequence[Event]:
        if isinstance(step, Change):
            self._waiting.append(step)
        elif isinstance(step, Rewound):
            self._rewind(step)
        else:
            return self._load(step)
        return ()

    def _rewind(self, step: Rewound) -> None:
        if not self._is_roll_back(step):
            self._waiting = [each for each in self._waiting if each.decided_at < step.to_offset]
            return
        self._waiting = []
        if self._rebase is None:
            detail = f"the log now differs from offset {step.to_offset} on, {self._told.end_offset} were told"
            self._rebase = _Rebase(problem=ROLLED_BACK, detail=detail, told=self._told)
        self._rebase.image = None

    def _load(self, loaded: Loaded) -> Sequence[Event]:
        is_first, self._is_loaded = not self._is_loaded, True
        is_overtaken = loaded.unseen is not None
        if is_overtaken:
            self._waiting = []
        if self._rebase is not None:
            if is_first or is_overtaken or self._rebase.image is None:
                self._rebase.image = loaded.image
            return ()
        if is_overtaken:
            return self._leap(self._told, loaded.image, OVERTAKEN, "a snapshot holds what they led to")
        if is_first:
            return self._agree(loaded.image)
        return ()  # the log was read again up to where it was read before

    def _agree(self, image: ClusterImage) -> Sequence[Event]:
        """The log, read again up to what was told, holds the secrets that memory lacks; else they are one."""
        told, self._told = self._told, image
        sight = between(told, image, self.cluster_id, self.scope)
        if not any(differences(told, image, sight)):
            return ()
        return self._leap(told, image, READ_OTHERWISE, "another version of Seawall read the same records")

    def _leap(self, before: ClusterImage, after: ClusterImage, problem: str, detail: str) -> Sequence[Event]:
        """From one state to another, with nothing known of the way."""
        self._told = after
        sight = between(before, after, self.cluster_id, self.scope)
        gap = _gap(sight, problem, detail, start=before.end_offset, end=after.end_offset)
        return [gap, *differences(before, after, sight)]

    # What is committed.

    def _note_committed(self, mark: QuorumMark | Unknown) -> None:
        assert self._follower is not None
        read = self._follower.image
        below = committed_below(mark, read)
        if isinstance(mark, Unknown):
            try:
                below = committed_by_snapshots(list_metadata_directory(self.directory), read)
            except OSError:
                return
        self._committed = max(self._committed, below)

    def _ready(self) -> list[Change]:
        """What may be said of what waits: whole batches, and transactions whose end is committed."""
        count = 0
        for each in self._waiting:
            if each.decided_at >= self._committed or each.batch_end > self._committed:
                break
            count += 1
        ready, self._waiting = self._waiting[:count], self._waiting[count:]
        return ready

    def _tell(self, *, is_at_end: bool) -> Sequence[Event]:
        ready = self._ready()
        if self._rebase is None:
            self._told, events = tell(self._told, ready, cluster_id=self.cluster_id, scope=self.scope)
            return events
        rebase = self._rebase
        if rebase.image is None:
            return ()
        rebase.image = _taken(rebase.image, ready)
        if not is_at_end or self._committed == NOTHING_KNOWN or not rebase.image.end_offset:
            return ()
        self._rebase = None
        if rebase.told is not None:
            return self._leap(rebase.told, rebase.image, ROLLED_BACK, rebase.detail)
        return self._baseline(rebase, rebase.image)

    def _baseline(self, rebase: _Rebase, image: ClusterImage) -> Sequence[Event]:
        self._told = image
        sight = first(image, self.cluster_id, self.scope)
        events = list(differences(ClusterImage(), image, sight))
        if rebase.problem is None:
            return events
        gap = gap_of(
            Source.KRAFT,
            rebase.problem,
            rebase.detail,
            cluster_id=self.cluster_id,
            event_id=self.new_id(),
            at_ms=self.now_ms(),
            missed=(None, image.end_offset),
        )
        return [gap, *events]

    # Keeping and saying.

    def _keep(self, events: Sequence[Event]) -> None:
        """A state with its events; one without any is written now and then."""
        assert self._follower is not None
        now = self.now_ms()
        if self._rebase is not None or self._told is self._written:
            return
        if not events and now - self._written_at_ms < self.kept_every_ms:
            return
        changed, gone = changed_rows(self._written, self._told)
        changed[PLACE] = place_row(self._told, self._follower.place.epochs)
        self._memory.keep(changed, gone=gone, events=events)
        self._written, self._written_at_ms, self._pending = self._told, now, tuple(events)

    def _trouble(self, mark: QuorumMark | Unknown, stopped: str | None) -> str:
        said = []
        if isinstance(mark, Unknown) and self._untold_runs > 1:  # an election is no trouble
            said.append(f"nobody says how far the metadata log is committed: {mark.reason}")
        if stopped is not None:
            said.append(f"the metadata log: {stopped}")
        unread = self._follower.image.unread if self._follower is not None else None
        if unread is not None:
            said.append(f"the metadata log, {unread}")
        return "; ".join(said)


_NOT_ASKED = QuorumMark(leader_id=-1, leader_epoch=2**31 - 1, high_watermark=NOTHING_KNOWN)


def _taken(image: ClusterImage, changes: Sequence[Change]) -> ClusterImage:
    if not changes:
        return image
    draft = Draft(image)
    for each in changes:
        draft.apply(each)
    return draft.image(changes[-1])


def _gap(sight: Sight, problem: str, detail: str, *, start: int, end: int) -> EvidenceGap:
    return sight.of_cluster(
        EvidenceGap,
        problem,
        topic_id=None,
        topic=None,
        partition=None,
        source=sight.source,
        problem=problem,
        detail=detail,
        gap_start=start,
        gap_end=end,
        not_before_ms=sight.not_before_ms,
    )
