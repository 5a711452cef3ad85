"""The observer of KIP-405's topic: reads on, says what the records say, keeps how far it is.

    the first time   everything is read, then what is still there is told (copies that went before are history
                     that nobody watched), then the state of each log as a baseline
    from then on     each record is told as it comes
    at each start, after a gap, every six hours   the baseline again, of each log

An agent reads the partitions of the topic of which its own broker holds a replica (`is_read`): so each record
is told by as many agents as the topic has replicas, with one id, and none hangs on a broker that is gone.

A partition that does not have the position any more to go on from is an evidence gap over what was missed. If
the topic went back behind it (an unclean election), or was made anew, it is read from its beginning and told
again: under the same ids where the records are the same.

Owns the order of these. Refuses to run twice at once: one thread calls `run_once`.

Invariant: an event is emitted before the position behind its record is kept; so after a kill it is emitted
once more, the same, with the same id, and never not at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from zlib import crc32

from audit_engine.observers.errors import SourceSilent
from audit_engine.observers.kip405.baseline import tier_states
from audit_engine.observers.kip405.fold import Fold, Refused
from audit_engine.observers.kip405.memory import Memory, Phase, Progress, State
from audit_engine.observers.kip405.segments import Copy, Teller
from audit_engine.observers.kip405.source import (
    Bounds,
    MetadataRecord,
    MetadataSource,
    MetadataTopic,
    Position,
    Read,
    Reading,
)
from audit_engine.observers.sinks import TOGETHER, EventsSink
from audit_engine.observers.telling import MEMORY_LOST, gap_of
from rules.events import Event, EvidenceGap, Source

TOPIC = "the topic of remote metadata"
BASELINE_EVERY_MS = 6 * 3_600_000
CHECK_EVERY_MS = 60_000
TURN_S = 30.0  # of reading, before `run_once` returns although there is more
_START = Position(0, -1)


@dataclass(slots=True, kw_only=True)
class Observer:
    """`folder` is the agent's own. `is_read`: whether a partition that these brokers have is this agent's."""

    source: MetadataSource
    cluster_id: str
    sink: EventsSink
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    folder: Path
    is_read: Callable[[frozenset[int]], bool] = lambda _: True
    turn_s: float = TURN_S
    _memory: Memory = field(init=False)
    _state: State | None = None
    _reading: Reading | None = None
    _reads: frozenset[int] = frozenset()  # what `_reading` is of
    _at_end: dict[int, int] = field(default_factory=dict)  # partitions that were read to there, for now
    _behind: dict[int, int] = field(default_factory=dict)  # at the last check, and how far they were
    _checked_ms: int = 0
    _baselines: dict[int, int] = field(default_factory=dict)  # when, by partition; absent: due
    _told: int = 0

    def __post_init__(self) -> None:
        self._memory = Memory(self.folder, cluster_id=self.cluster_id)

    def run_once(self) -> int:
        """Read to the topic's end; how many events came of it. Raises a StatedError where it cannot go on."""
        self._told = 0
        state = self._loaded()
        topic = self.source.topic()
        if topic is None:
            return self._told
        self._meet(state, topic)
        wanted = {number for number, brokers in topic.replicas.items() if self.is_read(brokers)}
        try:
            self._read_on(wanted)
        except BaseException:
            self._drop()  # what it has read and not told is read again
            raise
        return self._told

    @property
    def copy_count(self) -> int:
        """How many copies of segments are known to be there."""
        return 0 if self._state is None else sum(map(len, self._state.copies.values()))

    def close(self) -> None:
        self._drop()
        self._memory.close()

    def _loaded(self) -> State:
        if self._state is None:
            self._state, damage = self._memory.load(self.now_ms())
            if damage is not None:
                self._emit([self._gap(MEMORY_LOST, damage, None)])
        return self._state

    def _meet(self, state: State, topic: MetadataTopic) -> None:
        """Whether this is the topic that was read before."""
        if state.topic_id == topic.topic_id:
            return
        self._drop()
        if state.topic_id is not None:
            what = f"{state.topic_id} is {topic.topic_id} now"
            self._emit([self._gap("topic_recreated", what, None)])
        self._memory.begin(topic.topic_id, state)
        self._state = state = State(topic_id=topic.topic_id)
        self._baselines.clear()

    def _read_on(self, wanted: set[int]) -> None:
        state = self._loaded()
        reading = self._opened(state, wanted)
        for partition in sorted(wanted):
            if state.partitions[partition].phase is Phase.TELLING:
                self._tell_what_is_there(state, partition)
        last_moment, is_heard = time.monotonic() + self.turn_s, False
        while True:
            found = reading.read()
            is_heard = is_heard or bool(found)
            self._take(state, found)
            if found.lost:
                self._drop()
                reading = self._opened(state, wanted)
            if not found and self._at_end.keys() >= wanted:
                break
            if time.monotonic() >= last_moment:
                if not is_heard:
                    raise SourceSilent(what=TOPIC, act="read", why=f"nothing came in {self.turn_s:g} s")
                return
        self._check_that_it_is_the_end(state, wanted)
        for partition in sorted(wanted):
            self._baseline_if_due(state, partition)

    def _check_that_it_is_the_end(self, state: State, wanted: set[int]) -> None:
        """Once a minute, by the leaders' own word: that nothing comes may be all there is, or no reader."""
        now_ms = self.now_ms()
        if 0 <= now_ms - self._checked_ms < CHECK_EVERY_MS:
            return
        behind: dict[int, int] = {}
        for partition, end in self.source.ends(wanted).items():
            reached = max(state.partitions[partition].position.offset, self._at_end[partition])
            if reached < end:
                behind[partition] = reached
        stuck = [each for each, reached in behind.items() if self._behind.get(each) == reached]
        self._behind, self._checked_ms = behind, now_ms
        if stuck:
            why = f"partitions {stuck} have records that do not come"
            raise SourceSilent(what=TOPIC, act="read", why=why)

    def _opened(self, state: State, wanted: set[int]) -> Reading:
        for partition in sorted(wanted - state.partitions.keys()):
            state.partitions[partition] = Progress(_START, Phase.READING)
        if self._reading is None or self._reads != wanted:
            self._drop()
            positions = {each: state.partitions[each].position for each in sorted(wanted)}
            self._reading, self._reads = self.source.open(positions), frozenset(wanted)
        return self._reading

    def _drop(self) -> None:
        if self._reading is not None:
            self._reading.close()
        self._reading = None
        self._at_end = {}

    def _take(self, state: State, found: Read) -> None:
        for partition, records in _by_partition(found.records):
            self._at_end.pop(partition, None)
            self._fold(state, partition, records)
        for partition, end in found.ends.items():
            self._at_end[partition] = end
            self._reached(state, partition, end)
        for partition, bounds in found.lost.items():
            self._lost(state, partition, bounds)

    def _fold(self, state: State, partition: int, records: Iterable[MetadataRecord]) -> None:
        known, progress = state.copies_of(partition), state.partitions[partition]
        fold = Fold(known, self._teller(state))
        position = progress.position
        events: list[Event] = []
        for record in records:
            assert record.offset >= position.offset, "records come in order, each once"
            for told in fold.take(record):
                if isinstance(told, Refused):
                    place = (record.partition, record.offset, record.offset + 1)
                    events.append(self._gap(told.problem, told.detail, place))
                elif progress.phase is Phase.TOLD:
                    events.append(told)
            position = Position(record.offset + 1, record.leader_epoch)
        self._emit(events)
        self._keep(state, partition, progress._replace(position=position), fold.changed)

    def _reached(self, state: State, partition: int, end: int) -> None:
        progress = state.partitions[partition]
        if progress.phase is Phase.READING:
            position = progress.position._replace(offset=max(end, progress.position.offset))
            self._keep(state, partition, Progress(position, Phase.TELLING), {})
            self._tell_what_is_there(state, partition)

    def _tell_what_is_there(self, state: State, partition: int) -> None:
        teller = self._teller(state)
        copies = state.copies_of(partition).values()
        events = [event for copy in copies for event in teller.history(copy)]
        ordered = sorted(events, key=lambda each: (each.metadata_offset, each.segment_id))
        self._emit(ordered)
        self._keep(state, partition, state.partitions[partition]._replace(phase=Phase.TOLD), {})

    def _lost(self, state: State, partition: int, bounds: Bounds) -> None:
        progress = state.partitions[partition]
        asked = progress.position.offset
        self._baselines.pop(partition, None)
        if asked < bounds.start:
            why = "its retention was faster than this reader"
            self._emit([self._gap("topic_overtook", why, (partition, asked, bounds.start))])
            self._keep(state, partition, progress._replace(position=Position(bounds.start, -1)), {})
            return
        back_to = min(bounds.end, asked)
        why = f"it ends at {bounds.end} now"
        self._emit([self._gap("topic_went_back", why, (partition, back_to, asked))])
        forgotten: dict[str, Copy | None] = dict.fromkeys(state.copies_of(partition))
        self._keep(state, partition, Progress(Position(bounds.start, -1), Phase.READING), forgotten)

    def _keep(
        self, state: State, partition: int, progress: Progress, changed: Mapping[str, Copy | None]
    ) -> None:
        self._memory.keep(partition, progress, changed)
        copies = state.copies_of(partition)
        for segment_id, copy in changed.items():
            if copy is None:
                copies.pop(segment_id, None)
            else:
                copies[segment_id] = copy
        state.partitions[partition] = progress

    def _baseline_if_due(self, state: State, partition: int) -> None:
        now_ms = self.now_ms()
        said_ms = self._baselines.get(partition)
        if said_ms is not None and _turn(now_ms, partition) <= _turn(said_ms, partition):
            return
        states = tier_states(
            state.copies_of(partition).values(),
            cluster_id=self.cluster_id,
            metadata_partition=partition,
            metadata_offset=state.partitions[partition].position.offset - 1,
            now_ms=now_ms,
            new_id=self.new_id,
        )
        self._emit([*states])
        self._baselines[partition] = now_ms

    def _teller(self, state: State) -> Teller:
        assert state.topic_id is not None, "nothing is read before the topic is known"
        return Teller(self.cluster_id, state.topic_id)

    def _gap(self, problem: str, detail: str, missed: tuple[int, int, int] | None) -> EvidenceGap:
        """`missed`: a partition of the topic, and the range in it. Of which log it was is not known."""
        partition, start, end = missed if missed is not None else (None, None, None)
        where = "" if partition is None else f"partition {partition} of the topic: "
        return gap_of(
            Source.REMOTE_LOG_METADATA,
            problem,
            where + detail,
            cluster_id=self.cluster_id,
            event_id=self.new_id(),
            at_ms=self.now_ms(),
            missed=(start, end),
        )

    def _emit(self, events: Sequence[Event]) -> None:
        for first in range(0, len(events), TOGETHER):
            some = events[first : first + TOGETHER]
            self.sink.emit_many(some)
            self._told += len(some)


def _by_partition(
    records: Iterable[MetadataRecord],
) -> Iterable[tuple[int, list[MetadataRecord]]]:
    """Each partition's, in their order."""
    ordered = sorted(records, key=lambda each: each.partition)
    return ((number, list(found)) for number, found in groupby(ordered, key=lambda each: each.partition))


def _turn(at_ms: int, partition: int) -> int:
    """Which of the six-hour turns it is; each partition has its own beginning of them."""
    phase_ms = crc32(f"kip405:{partition}".encode()) % BASELINE_EVERY_MS
    return (at_ms + phase_ms) // BASELINE_EVERY_MS
