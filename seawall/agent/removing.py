"""What the agent removes, where the policy asks for it: expiry in the tier, and local trim.

Owns the joining, and the pace of requests. Both are off for every topic of which the policy does not say
otherwise, and for all of them while no policy is known.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rules.events import EventSink, LogEvent, TrimCertified, TrimOutcome
from rules.identity import LogId
from rules.policy import EMPTY, TopicPolicy
from seawall.agent.errors import NoRoomForEvidence
from seawall.agent.policy import PolicyWatch
from tiering.cluster.host import HostSurvey
from tiering.cluster.interface import TopicDescriber
from tiering.retention.digests import Digests
from tiering.retention.kafka import KafkaDeleteRecords
from tiering.retention.local_service import LocalTrim
from tiering.retention.service import RemoteRetention
from tiering.retention.table_end import MetadataEnds, ReadToEnd
from tiering.retention.topic_watch import TopicWatch
from tiering.segments.append.kafka import KafkaAppender
from tiering.segments.topic import SegmentsTopic
from tiering.store.patient import PatientStore
from tiering.store.throttle import Throttle
from tiering.uploader.metadata import Metadata
from tiering.uploader.one_log import Cluster

REMOVALS_PER_S = 50.0  # requests; a delete marker each


class Standing(Protocol):
    """Where a log stands with one of the two."""

    @property
    def topic(self) -> str: ...

    @property
    def state(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def detail(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Removing:
    """All that both need."""

    config: Mapping[str, str]
    broker_id: int
    topic: SegmentsTopic
    metadata: Metadata
    appender: KafkaAppender
    cluster: Cluster
    describer: TopicDescriber
    survey: Callable[[], HostSurvey]
    store: PatientStore
    policy: PolicyWatch
    digests: Digests
    sink: EventSink
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    sleep: Callable[[float], None]

    def remote(self) -> RemoteRetention:
        """Expiry in the tier."""
        pace = Throttle(
            bytes_per_s=REMOVALS_PER_S, burst_bytes=1, clock=time.monotonic, sleep=self.sleep
        )  # a request counts as a byte

        def pace_one() -> None:
            pace.take(1)

        def bury(log: LogId, key: bytes) -> int:
            return self.appender.append(log, key, None)

        return RemoteRetention(
            broker_id=self.broker_id,
            table=self._table(),
            publish_segment=self.metadata.publish,
            publish_log=self.metadata.publish_log,
            bury=bury,
            leadership=self.cluster.leadership,
            topics=TopicWatch(self.describer, now_ms=self.now_ms),
            metadata_topic=self.topic.name,
            survey=self.survey,
            objects=self.store,
            policy=self._policy_of,
            pace=pace_one,
            sink=self.sink,
            now_ms=self.now_ms,
            new_id=self.new_id,
            jitter=random.Random(),
        )

    def local(self, said_before: Sequence[LogEvent]) -> LocalTrim:
        """Local trim (T4). `said_before`: certificates and outcomes of earlier runs."""
        told = {each.certificate_id for each in said_before if isinstance(each, TrimOutcome)}
        certified = [each for each in said_before if isinstance(each, TrimCertified)]
        return LocalTrim(
            survey=self.survey,
            cluster=self.cluster,
            table=self._table(),
            digests=self.digests,
            policy=self._policy_of,
            objects=self.store,
            requests=KafkaDeleteRecords(self.config),
            sink=self.sink,
            now_ms=self.now_ms,
            new_id=self.new_id,
            left=[each for each in certified if each.certificate_id not in told],
        )

    def _table(self) -> ReadToEnd:
        ends = MetadataEnds(offsets=self.cluster.offsets, topic=self.topic.name, topic_id=self.topic.topic_id)
        return ReadToEnd(metadata=self.metadata, end_of=ends)

    def _policy_of(self, topic: str) -> TopicPolicy:
        return self.policy.of(topic) or EMPTY.effective(topic)


class Told:
    """Runs one of the two, and says where each log stands when that changes: in the agent's log, and in a
    counter by why nothing is removed."""

    def __init__(
        self,
        name: str,
        run_once: Callable[[], Mapping[LogId, Standing]],
        *,
        log: Any,
        evidence_is_full: Callable[[], bool],
        kept_for: Callable[[str], None],
    ) -> None:
        self._name = name
        self._run_once = run_once
        self._log = log
        self._evidence_is_full = evidence_is_full
        self._kept_for = kept_for
        self._said: dict[LogId, tuple[str, str]] = {}

    def run_once(self) -> None:
        """One run. Raises NoRoomForEvidence: what removes must be able to say so."""
        if self._evidence_is_full():
            raise NoRoomForEvidence
        for log, status in self._run_once().items():
            stands = status.state, status.reason
            if self._said.get(log) != stands:
                self._said[log] = stands
                if status.state == "kept":
                    self._kept_for(status.reason)
                self._log.info(
                    self._name,
                    log=f"{status.topic}-{log.partition} ({log.topic_id})",
                    state=status.state,
                    reason=status.reason,
                    detail=status.detail,
                )
