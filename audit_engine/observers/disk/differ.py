"""From one look at a broker's log dirs to the next: what happened, as events. A fold, without a clock.

    a life (directory) that was not there     replica_started, what it has closed, log_baseline; nothing of
                                              the former is compared
    one that is not there, on a disk that is  replica_removed, by what its name became
    one on a disk that cannot be looked into  directory_offline, once; compared when it is back
    one that cannot be read, or a checkpoint  evidence_gap, once, at the second look that finds it so
    the same one                              `changes`: segments, starts, watermark and epochs, compared

Owns the comparison over a host. Refuses to guess at what cannot be read: that stays as it was.

Invariants: each event of a change has the time of the last look that found it otherwise. Nothing is said
twice, and nothing of a life is judged against another's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from zlib import crc32

from audit_engine.observers.disk.changes import must_wait, tell_changes
from audit_engine.observers.disk.reading import active_bytes_of, pieces_of, read_on, start_of
from audit_engine.observers.disk.reads import Reads
from audit_engine.observers.disk.say import Voice
from audit_engine.observers.disk.seen import Life, Replica, Seen, Unread
from audit_engine.observers.disk.segments import is_same
from rules.events.base import Event, Source
from rules.events.emitters import EvidenceGap
from rules.events.metadata import DirectoryOffline
from rules.events.replicas import (
    BaselineOccasion,
    ReplicaAppearance,
    ReplicaRemoval,
    ReplicaRemoved,
    ReplicaStarted,
)
from tiering.cluster.host import HostSurvey, LocalPartition, LogDir
from tiering.log.checkpoints import LEADER_EPOCHS
from tiering.log.directory import DirectoryState, partition_name

BASELINE_EVERY_MS = 6 * 3_600_000
WATERMARK_EVERY_MS = 600_000
# A start is held against what was published before it (START-03): what has closed is said to be committed
# before it can go. Of a log that closes segments faster, not oftener than this.
WATERMARK_PASSED_MS = 30_000
PARTITION_UNREADABLE = "partition_unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """What the fold asks for. `has_remote`: whether Kafka's own tiered storage is on; None: not known."""

    reads: Reads
    new_id: Callable[[], str]
    has_remote: Callable[[str], bool | None] = lambda _: False


def observe(
    before: Seen | None,
    survey: HostSurvey,
    now_ms: int,
    ports: Ports,
    *,
    first: BaselineOccasion = BaselineOccasion.ONBOARDING,
    has_missed: bool = False,
) -> tuple[Seen, list[Event]]:
    """What is remembered from here on, and what is to be said. `first`: why there is no former look.

    `has_missed`: looks failed since the former one, so that each replica's whole state is due.
    """
    look = _Look(before, survey, now_ms, ports, first, has_missed)
    look.replicas()
    look.missing()
    look.directories()
    unread = look.unreadable()
    seen = Seen(
        broker=survey.broker,
        at_ms=look.at_ms,
        replicas=MappingProxyType(look.now),
        offline=look.offline,
        moving=look.moving,
        unread=MappingProxyType(unread),
    )
    return seen, look.events


class _Look:
    def __init__(
        self,
        before: Seen | None,
        survey: HostSurvey,
        now_ms: int,
        ports: Ports,
        first: BaselineOccasion,
        has_missed: bool,
    ) -> None:
        self.before, self.survey, self.ports, self.first = before, survey, ports, first
        self.has_missed = has_missed
        # A clock that was put back makes no interval that ends before it begins.
        self.at_ms = now_ms if before is None else max(now_ms, before.at_ms)
        self.was: Mapping[Life, Replica] = {} if before is None else before.replicas
        self.now: dict[Life, Replica] = {}
        self.events: list[Event] = []
        self.moved: frozenset[Life] = frozenset() if before is None else before.moving
        self.moving = frozenset(
            Life.of(local)
            for log_dir in survey.log_dirs
            for local in log_dir.partitions
            if local.state is DirectoryState.FUTURE
        )
        self.offline: frozenset[str] = frozenset()

    def replicas(self) -> None:
        for log_dir in self.survey.log_dirs:
            doubtful = "".join(log_dir.doubts)
            for local in log_dir.partitions:
                if local.state is DirectoryState.LIVE:
                    life = Life.of(local)
                    known = self.was.get(life)
                    if known is None:
                        self.now[life] = self._appeared(log_dir, local, life)
                    else:
                        self.now[life] = self._again(log_dir, local, known, doubtful)

    def missing(self) -> None:
        """Those that were there and are not: gone, or out of sight."""
        surveyed = {str(each.path): each for each in self.survey.log_dirs}
        unreadable = {str(each.path) for log_dir in self.survey.log_dirs for each in log_dir.unreadable}
        for life, known in self.was.items():
            if life in self.now:
                continue
            log_dir = surveyed.get(known.log_dir)
            path = f"{known.log_dir}/{life.topic}-{life.partition}"
            if log_dir is None or path in unreadable:
                self.now[life] = replace(
                    known, last_seen_ms=self._last_seen(known), is_dark=True, listing=None
                )
                continue
            voice = self._voice(known, self._last_seen(known))
            voice.say(ReplicaRemoved, replica_removal=self._removal(log_dir, life), metadata_offset=None)
            self.events += voice.events

    def directories(self) -> None:
        """What disks went out of sight since the last look."""
        assert self.before is not None or not self.was
        reasons = {str(each.path): each.reason for each in self.survey.offline}
        surveyed = {str(each.path) for each in self.survey.log_dirs}
        for known in self.was.values():
            if known.log_dir not in surveyed:
                reasons.setdefault(known.log_dir, "it is not among the log dirs any more")
        self.offline = frozenset(reasons)
        already: frozenset[str] = frozenset() if self.before is None else self.before.offline
        ids = {each.log_dir: each.life.directory_id for each in self.was.values()}
        for path in sorted(self.offline - already):
            self.events.append(
                DirectoryOffline(
                    event_id=self.ports.new_id(),
                    occurred_at_ms=self.at_ms,
                    cluster_id=self.survey.broker.cluster_id,
                    broker_id=self.survey.broker.broker_id,
                    directory_id=ids.get(path),
                    path=path,
                    problem="not_readable",
                    detail=reasons[path],
                    not_before_ms=None if self.before is None else self.before.at_ms,
                )
            )

    def unreadable(self) -> dict[str, Unread]:
        """What is there and cannot be read: said once, so that what is missing is not taken for no change."""
        was: Mapping[str, Unread] = {} if self.before is None else self.before.unread
        now: dict[str, Unread] = {}
        for path, problem, detail in _unread(self.survey):
            known = was.get(path)
            if known is None:
                now[path] = Unread(None if self.before is None else self.before.at_ms, False)
                continue
            now[path] = known._replace(is_said=True)
            if not known.is_said:
                self.events.append(self._gap(path, problem, detail, known.before_ms))
        return now

    def _gap(self, path: str, problem: str, detail: str, before_ms: int | None) -> EvidenceGap:
        name = partition_name(path.rpartition("/")[2]) if problem == PARTITION_UNREADABLE else None
        return EvidenceGap(
            event_id=self.ports.new_id(),
            occurred_at_ms=self.at_ms,
            cluster_id=self.survey.broker.cluster_id,
            topic_id=None,
            topic=None if name is None else name.topic,
            partition=None if name is None else name.partition,
            source=Source.LOG_DIR,
            problem=problem,
            detail=f"{path}: {detail}",
            gap_start=None,
            gap_end=None,
            not_before_ms=before_ms,
        )

    def _last_seen(self, known: Replica) -> int | None:
        if known.last_seen_ms is not None:
            return known.last_seen_ms
        return None if self.before is None else self.before.at_ms

    def _voice(self, replica: Replica, not_before_ms: int | None) -> Voice:
        return Voice(
            replica=replica,
            cluster_id=self.survey.broker.cluster_id,
            not_before_ms=not_before_ms,
            at_ms=self.at_ms,
            new_id=self.ports.new_id,
            events=[],
        )

    def _appeared(self, log_dir: LogDir, local: LocalPartition, life: Life) -> Replica:
        pieces = pieces_of(self.ports.reads, local, {})
        fresh = Replica(
            life=life,
            log_dir=str(log_dir.path),
            pieces=pieces,
            log_start=start_of(local, self.ports.has_remote(life.topic)),
            checkpoint_entry=local.checkpoint_log_start,
            high_watermark=local.checkpoint_high_watermark,
            epochs=tuple((each.epoch, each.start_offset) for each in local.epochs),
            listing=local.listing,
        )
        voice = self._voice(fresh, None if self.before is None else self.before.at_ms)
        if self.before is None:
            self._begin(voice, ReplicaAppearance.FIRST_SEEN, self.first)
        else:
            how = ReplicaAppearance.PROMOTED if life in self.moved else ReplicaAppearance.CREATED
            self._begin(voice, how, BaselineOccasion.ONBOARDING)
        return voice.replica

    def _begin(self, voice: Voice, how: ReplicaAppearance, occasion: BaselineOccasion) -> None:
        now = voice.replica
        voice.say(
            ReplicaStarted,
            appearance=how,
            log_start=now.log_start,
            local_start=now.local_start,
            high_watermark=now.high_watermark,
            log_end=None,
        )
        if how is ReplicaAppearance.CREATED:  # all that is in it is younger than the former look
            for piece in now.closed:
                voice.closed(piece)
        voice.baseline(occasion)
        self.events += voice.events

    def _removal(self, log_dir: LogDir, life: Life) -> ReplicaRemoval:
        """Why a directory is not there under its name: by the names that are."""
        successors = {each[:2] for each in self.now if each in self.moved}
        if life[:2] in successors:
            return ReplicaRemoval.REPLACED
        start = f"{life.topic}-{life.partition}."
        endings = {path.name.rpartition("-")[2] for path in log_dir.set_aside if path.name.startswith(start)}
        if "delete" in endings:
            return ReplicaRemoval.RENAMED_DELETE
        return ReplicaRemoval.RENAMED_STRAY if "stray" in endings else ReplicaRemoval.GONE

    def _again(self, log_dir: LogDir, local: LocalPartition, known: Replica, doubtful: str) -> Replica:
        """The same life as before: nothing at all, mostly."""
        active_bytes = active_bytes_of(self.ports.reads, local)
        if self._is_quiet(local, known, active_bytes):
            return known
        now = read_on(
            self.ports.reads,
            log_dir,
            local,
            known,
            doubtful,
            active_bytes,
            has_remote=self.ports.has_remote(known.life.topic),
        )
        occasion = self._baseline_due(known)
        if known.is_dark or (known.log_start is None and now.log_start is not None and known.pieces):
            occasion = BaselineOccasion.GAP
        if is_same(known, now) and occasion is None and not self._watermark_due(known, now):
            return now
        if must_wait(local, known, now):
            return replace(
                known,
                last_seen_ms=self._last_seen(known),
                is_dark=False,
                held_looks=known.held_looks + 1,
                listing=None,
            )
        voice = self._voice(
            replace(now, last_seen_ms=None, is_dark=False, held_looks=0), self._last_seen(known)
        )
        tell_changes(voice, local, known, self.ports.reads)
        if occasion is not None and voice.replica.baseline_at_ms != self.at_ms:
            voice.baseline(occasion)
        elif self._watermark_due(known, voice.replica):
            voice.watermark()
        self.events += voice.events
        return voice.replica

    def _is_quiet(self, local: LocalPartition, known: Replica, active_bytes: int | None) -> bool:
        """The common case, told by a few comparisons: thousands of these are looked at in one go."""
        return (
            known.listing is local.listing
            and bool(known.pieces)
            and known.pieces[-1].size_bytes == active_bytes
            and known.high_watermark == local.checkpoint_high_watermark
            and known.high_watermark == known.watermark_said
            and known.checkpoint_entry == local.checkpoint_log_start
            and self._baseline_due(known) is None
        )

    def _baseline_due(self, known: Replica) -> BaselineOccasion | None:
        said = known.baseline_at_ms
        if said is None:
            return BaselineOccasion.STARTED
        if self.has_missed:
            return BaselineOccasion.GAP
        phase = _phase(known.life, BASELINE_EVERY_MS)
        if (self.at_ms + phase) // BASELINE_EVERY_MS > (said + phase) // BASELINE_EVERY_MS:
            return BaselineOccasion.PERIODIC
        return None

    def _watermark_due(self, known: Replica, now: Replica) -> bool:
        if now.high_watermark is None or now.high_watermark == known.watermark_said:
            return False
        waited_ms = self.at_ms - known.watermark_said_at_ms
        return waited_ms >= WATERMARK_EVERY_MS or (
            waited_ms >= WATERMARK_PASSED_MS and _has_passed(now, known.watermark_said or 0)
        )


def _has_passed(now: Replica, said: int) -> bool:
    """Whether the watermark is at or above the end of a closed segment, and what was said of it is not."""
    for piece in reversed(now.pieces):
        if piece.end_offset is not None and piece.end_offset <= (now.high_watermark or 0):
            return piece.end_offset > said
    return False


def _unread(survey: HostSurvey) -> Iterator[tuple[str, str, str]]:
    """Path, problem and reason of each that cannot be read. A whole log dir is told as offline."""
    for log_dir in survey.log_dirs:
        for directory in log_dir.unreadable:
            yield str(directory.path), PARTITION_UNREADABLE, directory.reason
        for doubt in log_dir.doubts:
            name, _, reason = doubt.partition(": ")
            yield f"{log_dir.path}/{name}", "checkpoint_unreadable", reason
        for local in log_dir.partitions:
            if local.doubts:
                yield f"{local.path}/{LEADER_EPOCHS}", "epochs_unreadable", "; ".join(local.doubts)


def _phase(life: Life, every_ms: int) -> int:
    return crc32(f"{life.topic_id}:{life.partition}:{life.broker_id}".encode()) % every_ms
