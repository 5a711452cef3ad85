"""Watches every log that is tiered from here: how long until local retention reaches its frontier.

Owns the looks, what is remembered of each log between them, and the event, once an approach. What to expect
is `warning`'s to say. Refuses to guess: a log of which something is not known keeps the values of its last
look, and says what it was that is not known.

Invariant (T7): one log's trouble ends at its edge; the others are looked at all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rules.events import EventSink, RetentionWarning
from rules.identity import LogId
from tiering.cluster.host import HostSurvey, LocalPartition
from tiering.cluster.interface import (
    BrokerSettings,
    Leadership,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.errors import StatedError
from tiering.log.directory import Segment
from tiering.outcome import Inconclusive
from tiering.retention.newest import newest_ms
from tiering.retention.warning import (
    NEVER_MS,
    Approach,
    BrokerLimits,
    Piece,
    Seen,
    WarningSettings,
    Watched,
    observe,
)
from tiering.segments.frontier import frontier
from tiering.uploader.metadata import Metadata
from tiering.uploader.one_log import Cluster


@dataclass(slots=True, kw_only=True)
class Outlook:
    """What is known of one log's approach. `unknown`: why the last look came to nothing, if it did."""

    log: LogId
    topic: str
    approach: Approach | None = None
    looked_at_ms: int | None = None
    unknown: str = ""
    watched: Watched | None = None


@dataclass(slots=True, kw_only=True)
class RetentionWatch:
    """The early warning of one agent. One thread calls `run_once`."""

    survey: Callable[[], HostSurvey]
    cluster: Cluster
    metadata: Metadata
    is_tiered: Callable[[str], bool]
    sink: EventSink
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    settings: WarningSettings = field(default_factory=WarningSettings)
    newest: Callable[[Segment], int | None] = newest_ms
    _outlooks: dict[LogId, Outlook] = field(default_factory=dict)
    _newest: dict[Path, tuple[int, int]] = field(default_factory=dict)  # of closed ones: size, newest_ms

    def run_once(self) -> Mapping[LogId, Outlook]:
        """Look at every log once; what is to be expected of those led here. Others are forgotten."""
        host = self.survey()
        live = {p: local for p, local in host.live.items() if self.is_tiered(p.topic)}
        leaders = self.cluster.leadership.leadership(live)
        topics = self.cluster.settings.topic_settings({p.topic for p in live})
        broker = self.cluster.settings.broker_settings(host.broker.broker_id)
        outlooks: dict[LogId, Outlook] = {}
        for partition, local in live.items():
            leader = leaders[partition]
            log = LogId(host.broker.cluster_id, local.incarnation.topic_id, partition.partition)
            if isinstance(leader, Leadership) and leader.leader_id == host.broker.broker_id:
                fresh = Outlook(log=log, topic=partition.topic)
                outlook = outlooks[log] = self._outlooks.get(log, fresh)
                self._look(outlook, partition, local, leader, (topics[partition.topic], broker))
            elif isinstance(leader, Unknown) and log in self._outlooks:
                outlooks[log] = self._outlooks[log]
                outlooks[log].unknown = leader.reason
        self._outlooks = outlooks
        self._forget_files(live)
        return dict(outlooks)

    def _look(
        self,
        outlook: Outlook,
        partition: TopicPartition,
        local: LocalPartition,
        leader: Leadership,
        configured: tuple[TopicSettings | Unknown, BrokerSettings | Unknown],
    ) -> None:
        try:
            seen = self._seen(outlook.log, local, *configured)
            if isinstance(seen, str):
                outlook.unknown = seen
                return
            outlook.watched, outlook.approach = observe(outlook.watched, seen, self.settings)
            outlook.looked_at_ms, outlook.unknown = seen.at_ms, ""
            if outlook.approach.warns:
                self._tell(outlook.approach, outlook.log, partition.topic, leader)
        except Exception as error:  # noqa: BLE001 a log's edge: one log's trouble ends no other's look (T7)
            outlook.unknown = str(error) if isinstance(error, StatedError) else repr(error)

    def _seen(
        self,
        log: LogId,
        local: LocalPartition,
        topic: TopicSettings | Unknown,
        broker: BrokerSettings | Unknown,
    ) -> Seen | str:
        """What is so of a log now, or why that is not known."""
        if isinstance(topic, Unknown):
            return topic.reason
        if isinstance(broker, Unknown):
            return broker.reason
        view = self.metadata.view(log)
        reached = Inconclusive("nobody has claimed it yet") if view is None else frontier(view)
        if isinstance(reached, Inconclusive):
            return reached.reason
        pieces = [self._piece(each) for each in local.listing.segments]
        here = topic.as_seen_by(broker)
        return Seen(
            at_ms=self.now_ms(),
            frontier=reached.offset,
            pieces=tuple(piece for piece in pieces if piece is not None),
            limits=BrokerLimits(local_ms=_limit(here.local_ms), local_bytes=_limit(here.local_bytes)),
        )

    def _piece(self, segment: Segment) -> Piece | None:
        kept = self._newest.get(segment.path)
        if kept is not None and segment.is_closed and kept[0] == segment.size_bytes:
            found: int | None = kept[1]
        else:
            found = self.newest(segment)
        if found is None:
            return None
        if segment.is_closed:
            self._newest[segment.path] = (segment.size_bytes, found)
        return Piece(segment.base_offset, segment.end_offset, segment.size_bytes, found)

    def _forget_files(self, live: Mapping[TopicPartition, LocalPartition]) -> None:
        there = {each.path for local in live.values() for each in local.listing.segments}
        self._newest = {path: kept for path, kept in self._newest.items() if path in there}

    def _tell(self, approach: Approach, log: LogId, topic: str, leader: Leadership) -> None:
        assert approach.expires_in_ms is not None, "what never expires overtakes nothing"
        self.sink.emit(
            RetentionWarning(
                event_id=self.new_id(),
                occurred_at_ms=self.now_ms(),
                log=log,
                topic=topic,
                leader_epoch=-1 if leader.leader_epoch is None else leader.leader_epoch,
                frontier=approach.frontier,
                local_start=approach.local_start,
                expires_in_ms=approach.expires_in_ms,
                copied_in_ms=NEVER_MS if approach.copied_in_ms is None else approach.copied_in_ms,
                lag_bytes=approach.lag_bytes,
            )
        )


def _limit(setting: int) -> int | None:
    return None if setting < 0 else setting
