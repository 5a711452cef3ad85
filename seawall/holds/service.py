"""Places, releases and lists holds: in our agents, on the object versions, in Kafka. Each by itself.

What one of the three lacks is said, and keeps none of the others: a log of which our tier knows nothing has
no agent to bind, a bucket may be without object lock, and the policy may leave Kafka alone. The order is that
of what runs out first: agents within seconds, then Kafka, then each object version.

Owns the joining, and the events hold_placed and hold_released. Invariant: a hold that is told to be placed is
in force in at least one of the three, or the answer says that nothing of it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

from rules.events import HoldPlaced, HoldReleased, LogEvent
from rules.identity import LogId
from rules.policy.record import HeldBy, HeldTopic
from seawall.holds.retention import InKafka, KafkaRetention
from tiering.errors import StatedError
from tiering.holds import placing
from tiering.holds.placing import Means
from tiering.holds.versions import Locks, set_holds, to_release
from tiering.segments.records import HeldVersions, Hold, LogRecord, ReleasedHold, SegmentId, SegmentRecord
from tiering.segments.view import LogView

NO_EPOCH = -1
NOT_OURS = "Seawall's metadata has no record of this log: nothing of ours removes anything of it"
NO_STORE = "no bucket is set (s3.bucket)"


class Table(placing.Tier, Protocol):
    """The metadata topic, as `seawall.tier.following` follows it."""

    def logs(self) -> tuple[LogId, ...]: ...

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A log by its id and its topic's name."""

    log: LogId
    topic: str

    def __str__(self) -> str:
        return f"{self.topic}-{self.log.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A hold to be placed. `versions`: of which offsets object versions are held; None: of none."""

    hold_id: str
    start_offset: int
    end_offset: int | None
    reason: str
    owner: str
    finding_id: str | None
    versions: tuple[int, int | None] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What is in force of one hold on one log; where one of the three is not, why.

    `is_new`: it was placed, or released, now. `versions` are None where none was asked for.
    """

    place: Place
    hold: Hold
    agents: bool
    kafka: InKafka
    versions: HeldVersions | None
    is_new: bool = False
    trouble: str = ""

    @property
    def is_in_force(self) -> bool:
        held = self.versions is not None and self.versions.held > 0
        return self.agents or self.kafka.is_held or held


@dataclass(frozen=True, slots=True, kw_only=True)
class Holds:
    """`table` is None where the cluster has no topic of our metadata, `locks` where no bucket is set."""

    table: Table | None
    kafka: KafkaRetention
    locks: Locks | None
    emit: Callable[[LogEvent], None]
    now_ms: Callable[[], int]
    new_id: Callable[[], str]

    def place(self, place: Place, asked: Asked) -> Bound:
        """Place it, or go on with one of this id that stands already."""
        hold = Hold(
            hold_id=asked.hold_id,
            start_offset=asked.start_offset,
            end_offset=asked.end_offset,
            reason=asked.reason,
            placed_by=asked.owner,
            placed_at_ms=self.now_ms(),
            finding_id=asked.finding_id,
        )
        written = None if self.table is None else placing.place(place.log, hold, self._means(self.table))
        if written is not None:
            hold = written.hold
            if written.offset is not None:
                self.emit(self._placed(place, hold, written.offset))
        kafka = self._in_kafka(place, hold)
        versions = self._hold_versions(place.log, hold, asked) if written is not None else None
        return Bound(
            place=place,
            hold=replace(hold, versions=versions),
            agents=written is not None,
            kafka=kafka,
            versions=versions,
            is_new=written is not None and written.offset is not None,
            trouble="" if written is not None else NOT_OURS,
        )

    def was_released(self, place: Place, hold_id: str) -> bool:
        """Whether somebody released a hold of this id: a finding does not place it again."""
        record = self._record(place.log)
        if record is not None and placing.was_released(record, hold_id):
            return True
        return self.kafka.was_released(place.log.topic_id, hold_id)

    def release(self, bound: Bound, *, owner: str, reason: str) -> Bound:
        """Kafka is put back first, our agents are let go last: what fails leaves the rest in force."""
        place, hold = bound.place, bound.hold
        kafka = self.kafka.release(place.topic, hold.hold_id, owner) if bound.kafka.is_held else bound.kafka
        versions = self._release_versions(place.log, hold)
        is_gone = versions is None or versions.trouble is None
        if self.table is not None and bound.agents and is_gone:
            told = ReleasedHold(
                hold_id=hold.hold_id, released_by=owner, reason=reason, released_at_ms=self.now_ms()
            )
            written = placing.release(place.log, told, self._means(self.table))
            if written is not None and written.offset is not None:
                self.emit(self._released(place, told, written.offset))
        return Bound(
            place=place,
            hold=hold,
            agents=bound.agents and not is_gone,
            kafka=kafka,
            versions=versions,
            is_new=True,
            trouble="" if is_gone else "object versions are still held, and so is the log",
        )

    def standing(self) -> tuple[Bound, ...]:
        """Every hold that stands, by log."""
        held = self.kafka.held()
        found = [*self._in_table(held), *self._in_kafka_alone(held)]
        return tuple(sorted(found, key=lambda each: (str(each.place), each.hold.placed_at_ms)))

    # What is in force.

    def _in_table(self, held: dict[str, HeldTopic]) -> Iterator[Bound]:
        if self.table is None:
            return
        self.table.read_on()
        for log in self.table.logs():
            record = self._record(log, read_on=False)
            if record is None:
                continue
            place = Place(log=log, topic=record.topic)
            for hold in record.holds:
                yield Bound(
                    place=place,
                    hold=hold,
                    agents=True,
                    kafka=self._seen_in_kafka(held, place, hold.hold_id),
                    versions=hold.versions,
                )

    def _in_kafka_alone(self, held: dict[str, HeldTopic]) -> Iterator[Bound]:
        for topic in held.values():
            for by in topic.holds:
                log = LogId(self.kafka.cluster_id, topic.topic_id, by.partition or 0)
                record = self._record(log, read_on=False)
                if record is not None and any(each.hold_id == by.hold_id for each in record.holds):
                    continue
                place = Place(log=log, topic=topic.topic)
                yield Bound(
                    place=place,
                    hold=Hold(
                        hold_id=by.hold_id,
                        start_offset=0,
                        end_offset=None,
                        reason=by.reason,
                        placed_by=by.placed_by,
                        placed_at_ms=by.placed_at_ms,
                        finding_id=by.finding_id,
                    ),
                    agents=False,
                    kafka=self._seen_in_kafka(held, place, by.hold_id),
                    versions=None,
                    trouble=NOT_OURS,
                )

    def _seen_in_kafka(self, held: dict[str, HeldTopic], place: Place, hold_id: str) -> InKafka:
        topic = held.get(place.topic)
        is_its = topic is not None and topic.topic_id == place.log.topic_id
        if topic is None or not is_its or not any(each.hold_id == hold_id for each in topic.holds):
            why = "" if self.kafka.is_allowed(place.topic) else "the policy does not say hold_kafka"
            return InKafka(is_held=False, why=why)
        try:
            is_set = self.kafka.is_set(topic)
        except StatedError as unknown:
            return InKafka(is_held=False, why=str(unknown).splitlines()[0])
        return InKafka(is_held=is_set, why="" if is_set else "declared, and the topic's settings are others")

    # Each of the three.

    def _in_kafka(self, place: Place, hold: Hold) -> InKafka:
        by = HeldBy(
            hold_id=hold.hold_id,
            partition=place.log.partition,
            reason=hold.reason,
            placed_by=hold.placed_by,
            placed_at_ms=hold.placed_at_ms,
            finding_id=hold.finding_id,
        )
        try:
            return self.kafka.hold(place.topic, by)
        except StatedError as refused:
            return InKafka(is_held=False, why=str(refused).splitlines()[0])

    def _hold_versions(self, log: LogId, hold: Hold, asked: Asked) -> HeldVersions | None:
        if asked.versions is None or self.table is None:
            return hold.versions
        start, end = asked.versions
        if self.locks is None:
            return HeldVersions(
                start_offset=start,
                end_offset=end,
                held=0,
                missing=0,
                at_ms=self.now_ms(),
                trouble=NO_STORE,
            )
        found = set_holds(
            self._segments(log),
            self.locks,
            start_offset=start,
            end_offset=end,
            held=True,
            now_ms=self.now_ms,
        )
        placing.note_versions(log, hold.hold_id, found, self._means(self.table))
        return found

    def _release_versions(self, log: LogId, hold: Hold) -> HeldVersions | None:
        asked = hold.versions
        if asked is None or not (asked.held or asked.missing) or self.table is None:
            return None
        if self.locks is None:
            return replace(asked, trouble=NO_STORE)
        record = self._record(log)
        others = () if record is None else record.holds
        records = to_release(
            self._segments(log), asked, [each for each in others if each.hold_id != hold.hold_id]
        )
        return set_holds(
            records,
            self.locks,
            start_offset=asked.start_offset,
            end_offset=asked.end_offset,
            held=False,
            now_ms=self.now_ms,
        )

    def _segments(self, log: LogId) -> list[SegmentRecord]:
        assert self.table is not None
        view: LogView | None = self.table.view(log)
        ids = [] if view is None else [each.segment_id for each in view.segments()]
        records = (self.table.segment(log, each) for each in ids)
        return [each for each in records if each is not None]

    def _record(self, log: LogId, *, read_on: bool = True) -> LogRecord | None:
        if self.table is None:
            return None
        if read_on:
            self.table.read_on()
        view = self.table.view(log)
        return None if view is None else view.record

    def _means(self, table: Table) -> Means:
        return Means(tier=table, now_ms=self.now_ms, new_id=self.new_id)

    # What is told of it.

    def _placed(self, place: Place, hold: Hold, offset: int) -> HoldPlaced:
        return HoldPlaced(
            event_id=self.new_id(),
            occurred_at_ms=self.now_ms(),
            log=place.log,
            topic=place.topic,
            leader_epoch=NO_EPOCH,
            hold_id=hold.hold_id,
            start_offset=hold.start_offset,
            end_offset=hold.end_offset,
            principal=hold.placed_by,
            reason=hold.reason,
            finding_id=hold.finding_id,
            metadata_offset=offset,
        )

    def _released(self, place: Place, told: ReleasedHold, offset: int) -> HoldReleased:
        return HoldReleased(
            event_id=self.new_id(),
            occurred_at_ms=self.now_ms(),
            log=place.log,
            topic=place.topic,
            leader_epoch=NO_EPOCH,
            hold_id=told.hold_id,
            principal=told.released_by,
            reason=told.reason,
            metadata_offset=offset,
        )
