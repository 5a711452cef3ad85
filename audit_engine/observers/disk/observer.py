"""The observer of this host's log dirs: one look, compared with the one before, kept, said.

Owns the order of these. Refuses to run twice at once: one thread calls `run_once`. After a look that failed,
the next one that does not says the whole state of each replica.

Invariant: a look is durable, with its events, before the first of them is emitted; what a killed process had
not emitted is emitted by the next one first, unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from audit_engine.observers.disk.differ import Ports, observe
from audit_engine.observers.disk.memory import LOOK_KEPT_EVERY_MS, Memory
from audit_engine.observers.disk.reads import FileReads, Reads
from audit_engine.observers.disk.seen import Seen
from audit_engine.observers.telling import TellingObserver
from rules.events import BaselineOccasion, Source
from tiering.cluster.errors import NoLogDirs
from tiering.cluster.host import HostSurvey, OfflineDir


@dataclass(slots=True, kw_only=True)
class Observer(TellingObserver):
    """`has_remote`: whether a topic has Kafka's own tiered storage on; None: not known, and then nothing is
    said of its replicas' log start."""

    survey: Callable[[], HostSurvey]
    has_remote: Callable[[str], bool | None] = lambda _: False
    reads: Reads = field(default_factory=FileReads)
    kept_every_ms: int = LOOK_KEPT_EVERY_MS
    _memory: Memory | None = field(init=False, default=None)  # whose it is, the first survey tells
    _seen: Seen | None = None
    _first: BaselineOccasion = BaselineOccasion.ONBOARDING
    _has_missed: bool = False  # a look failed since the last that did not

    def run_once(self) -> int:
        """Look, compare, keep, emit; how many events came of it. Raises NoLogDirs before the first look."""
        has_missed, self._has_missed = self._has_missed, True
        survey = self._look()
        memory = self._memory or self._load(survey)
        self._emit()
        ports = Ports(reads=self.reads, new_id=self.new_id, has_remote=self.has_remote)
        seen, events = observe(
            self._seen, survey, self.now_ms(), ports, first=self._first, has_missed=has_missed
        )
        memory.keep(seen, events)
        self._seen, self._pending, self._has_missed = seen, tuple(events), False
        self._emit()
        return len(events)

    @property
    def replica_count(self) -> int:
        """The replicas that are remembered, those out of sight among them."""
        return 0 if self._seen is None else len(self._seen.replicas)

    @property
    def unread_count(self) -> int:
        """Log dirs, partitions and checkpoints that could not be read at the last look."""
        return 0 if self._seen is None else len(self._seen.offline) + len(self._seen.unread)

    def _look(self) -> HostSurvey:
        """With every log dir out of sight, those that were in sight are."""
        try:
            return self.survey()
        except NoLogDirs as none:
            if self._seen is None:
                raise
            paths = {each.log_dir for each in self._seen.replicas.values()} | self._seen.offline
            offline = tuple(OfflineDir(path=Path(path), reason=str(none)) for path in sorted(paths))
            return HostSurvey(broker=self._seen.broker, log_dirs=(), offline=offline)

    def _load(self, survey: HostSurvey) -> Memory:
        memory = Memory(self.folder, survey.broker, kept_every_ms=self.kept_every_ms)
        loaded = memory.load(self.now_ms())
        self._memory, self._seen, self._pending = memory, loaded.seen, loaded.pending
        if loaded.damage is not None:
            self._first = BaselineOccasion.GAP
            self._pending = (self._memory_lost(Source.LOG_DIR, survey.broker.cluster_id, loaded.damage),)
        return memory
