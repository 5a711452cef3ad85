"""One log's metadata topic, its table, a bucket and a clock: the world that expiry acts on.

The table is the real one, fed with encoded records; the bucket is `MemoryStore`. Every effect is a moment at
which a test can have the process killed, before or after it, or let somebody else act.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from rules.events import DeleteFinished, DeleteStarted, LogEvent
from tests.tiering.segments.strategies import CLUSTER_ID, LOG, gap, log_record, objects_of, segment
from tests.tiering.store.memory import MemoryStore, Version
from tiering.retention.expire import Ports
from tiering.retention.facts import TierCopy, facts_of
from tiering.retention.remote import Presence, Situation
from tiering.retention.remote_policy import BlastLedger, BlastLimit, RemotePolicy
from tiering.retention.unique_bytes import Extent
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.findings import Finding
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import Gap, Hold, LogId, LogRecord, SegmentId, SegmentRecord, SegmentState
from tiering.segments.state import MetadataTopic
from tiering.segments.table import PartitionTable
from tiering.segments.view import LogView
from tiering.uploader.errors import NotFollowed

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
EPOCH = 5
TOPIC = MetadataTopic(
    cluster_id=CLUSTER_ID, topic_id=base64.urlsafe_b64encode(b"m" * 16).decode()[:22], partition_count=1
)
POLICY = RemotePolicy(
    deletes=True,
    total_ms=7 * DAY_MS,
    total_bytes=None,
    grace_ms=DAY_MS,
    topic_grace_ms=7 * DAY_MS,
    window_ms=7 * DAY_MS,
    blast_per_hour=BlastLimit(1000, 2**40),
)


class Killed(Exception):
    """The process is gone."""


@dataclass
class World:
    """One log, led at EPOCH. `moments` counts effects; what `at` holds for a moment is done there."""

    policy: RemotePolicy = POLICY
    log: LogId = LOG
    now_ms: int = NOW_MS
    leader_epoch: int = EPOCH
    topic: Presence = Presence.THERE
    local: tuple[Extent, ...] = ()
    lag: int = 0  # by how many records the table is behind the topic
    moment: int = 0
    at: dict[int, Callable[[], None]] = field(default_factory=dict)
    events: list[LogEvent] = field(default_factory=list)
    store: MemoryStore = field(default_factory=MemoryStore)
    ledger: BlastLedger = field(default_factory=BlastLedger)
    topic_records: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)  # about what we published
    paced: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.table = PartitionTable(TOPIC, 0, complete_from=0)

    # What others do: uploaders, holders, restorers, a leader before this one.

    def append(self, record: SegmentRecord | LogRecord) -> list[Finding]:
        """Put a record into the topic, and let the table read it."""
        if isinstance(record, LogRecord):
            return self.append_raw(log_key(record.log), encode_log(record))
        return self.append_raw(segment_key(record.log, record.segment_id), encode_segment(record))

    def append_raw(self, key: bytes, value: bytes | None) -> list[Finding]:
        offset = len(self.topic_records)
        self.topic_records.append((key, value))
        return self.table.apply(offset, key, value)

    def claim(self, epoch: int = EPOCH, **fields: Any) -> None:
        """A claim, recorded two graces ago unless told otherwise."""
        before = self.table.view(self.log)
        record = before.record if before is not None else None
        if record is not None:
            assert before is not None
            fields = {
                "log_start": record.log_start,
                "gaps": record.gaps,
                "holds": record.holds,
                "based_on": before.record_offset,
                "earlier_claims": (*before.claims_to_repeat(), before.claims[-1]),
                **fields,
            }
        fields.setdefault("occurred_at_ms", self.now_ms - 2 * self.policy.grace_ms)
        assert not self.append(log_record(epoch, log=self.log, **fields))

    def change(self, **fields: Any) -> None:
        """Another record under the standing claim, as a holder or a restorer writes it."""
        view = self.view
        assert view.record is not None
        changed = replace(
            view.record,
            based_on=view.record_offset,
            claim_offset=view.claims[-1].offset,
            earlier_claims=view.claims_to_repeat(),
            event_id=f"change-{next(self.numbers)}",
            **fields,
        )
        assert not self.append(changed)

    def hold(self, start: int, end: int | None = None) -> None:
        held = Hold(
            hold_id=f"hold-{start}",
            start_offset=start,
            end_offset=end,
            reason="a finding",
            placed_by="a test",
            placed_at_ms=self.now_ms,
        )
        assert self.view.record is not None
        self.change(holds=(*self.view.record.holds, held))

    def gaps(self, *ranges: tuple[int, int]) -> None:
        gaps: tuple[Gap, ...] = tuple(gap(start, end) for start, end in ranges)
        self.change(gaps=gaps)

    def copy(
        self,
        base: int,
        end: int,
        *,
        age_ms: int = 30 * DAY_MS,
        state: SegmentState = SegmentState.COPY_FINISHED,
        max_timestamp_ms: int | None = None,
        **fields: Any,
    ) -> SegmentRecord:
        """A copy whose newest record is `age_ms` old, with its objects in the bucket."""
        newest_ms = self.now_ms - age_ms if max_timestamp_ms is None else max_timestamp_ms
        whole = segment(
            next(self.numbers),
            base,
            end,
            **{"leader_epoch": EPOCH, "epochs": ((0, base),), "log": self.log, **fields},
            max_timestamp_ms=newest_ms,
        )
        started = replace(whole, state=SegmentState.COPY_STARTED, objects=type(whole.objects)())
        assert not self.append(started)
        if state is SegmentState.COPY_STARTED:
            return started
        for kind in ("log", "aux", "json"):
            version = Version(version_id=f"v1-{kind}", content=kind.encode())
            self.store.kept.objects[f"{whole.key_stem}.{kind}"].append(version)
        finished = replace(whole, objects=objects_of(whole.key_stem, whole.size_bytes))
        assert not self.append(finished)
        return finished

    def restore(self, before: SegmentRecord) -> None:
        """Put a segment back that is being removed, in a new generation."""
        for kind in ("log", "aux", "json"):
            version = Version(version_id=f"v2-{kind}", content=kind.encode())
            self.store.kept.objects[f"{before.key_stem}.{kind}"].append(version)
        again = replace(
            before,
            state=SegmentState.COPY_FINISHED,
            objects=objects_of(before.key_stem, before.size_bytes, "v2"),
            generation=before.generation + 1,
            leader_epoch=max(EPOCH, before.leader_epoch),
            event_id=f"restore-{next(self.numbers)}",
        )
        assert not self.append(again)

    # What is there.

    @property
    def view(self) -> LogView:
        view = self.table.view(self.log)
        assert view is not None
        return view

    @property
    def log_start(self) -> int:
        assert self.view.record is not None
        return self.view.record.log_start

    def states(self) -> dict[tuple[int, int], SegmentState]:
        return {(s.base_offset, s.end_offset): s.state for s in self.view.segments()}

    def marked(self) -> set[str]:
        """Keys under a delete marker."""
        return {key for key, versions in self.store.kept.objects.items() if versions[-1].is_marker}

    def is_marked(self, record: SegmentRecord) -> bool:
        return bool({f"{record.key_stem}.{kind}" for kind in ("log", "aux", "json")} & self.marked())

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def removal_events(self) -> list[DeleteStarted | DeleteFinished]:
        return [event for event in self.events if isinstance(event, DeleteStarted | DeleteFinished)]

    # The ports of `expire`.

    @property
    def ports(self) -> Ports:
        return Ports(
            table=self,
            tier=self,
            objects=self,
            sink=self,
            pace=self._pace,
            removing=self._removing,
            now_ms=lambda: self.now_ms,
            new_id=lambda: f"ours-{next(self.numbers)}",
            broker_id=1,
        )

    def look(self, log: LogId) -> Situation:
        self._moment()
        facts = facts_of(
            log,
            self.table.view(log),
            applied_to=self.table.position - self.lag,
            end_offset=len(self.topic_records),
        )
        limit = self.policy.blast_per_hour
        return Situation(
            facts=facts,
            policy=self.policy,
            now_ms=self.now_ms,
            leader_epoch=self.leader_epoch,
            topic=self.topic,
            local=self.local,
            may_advance=self.policy.blast_per_advance,
            may_remove=self.ledger.left(log.topic_id, limit, now_ms=self.now_ms),
        )

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        return self.table.segment(log, segment_id)

    def removed(self, log: LogId) -> list[SegmentRecord]:
        gone = [s for s in self.view.segments() if s.state is SegmentState.DELETE_FINISHED]
        records = (self.segment(log, s.segment_id) for s in sorted(gone, key=lambda s: s.metadata_offset))
        return [record for record in records if record is not None]

    def publish(self, record: SegmentRecord | LogRecord) -> int:
        self._moment()
        found = self.append(record)
        self._moment()
        if any(not finding.reason.followed for finding in found):
            raise NotFollowed(
                log=self.log, segment_id=record.event_id, state="record", why=str(found[0].reason.value)
            )
        self.findings += found
        return len(self.topic_records) - 1

    def forget(self, log: LogId, segment_id: SegmentId | None) -> None:
        self._moment()
        key = log_key(log) if segment_id is None else segment_key(log, segment_id)
        assert not self.append_raw(key, None)
        self._moment()

    def mark_deleted(self, key: str) -> str | None:
        self._moment()
        marker = self.store.mark_deleted(key)
        self._moment()
        return marker

    def keeps_versions(self) -> bool:
        return self.store.keeps_versions()

    def emit(self, event: LogEvent) -> None:
        self._moment()
        self.events.append(event)
        self._moment()

    def _pace(self) -> None:
        self.paced += 1

    def _removing(self, copy: TierCopy) -> None:
        self.ledger.spend(self.log.topic_id, copy.size_bytes, now_ms=self.now_ms)

    def _moment(self) -> None:
        moment, self.moment = self.moment, self.moment + 1
        if moment in self.at:
            self.at.pop(moment)()


def killed() -> None:
    raise Killed
