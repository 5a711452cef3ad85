"""What the agent beside a broker would remove now, by its own services, and nothing of it done.

    expiry   `RemoteRetention.plan`, over the logs that the broker leads, and deleted topics' where it leads
             their metadata partition
    trim     `LocalTrim.plan`, over the logs that the broker leads and the policy trims

Runs beside the broker, as the agent does, since trim goes by the log dirs: who leads, what is closed, what is
on disk. The digests of the other agents are those of the last hour in the topic of events.

Owns the joining. Refuses to change anything: every port that would is one that refuses, and a service that
used it would end the plan as an error. Two things are as an agent that has run for a while has them: that a
topic is missing is taken for its end at once, and this table, read from the topic's beginning to its end, is
compared as a whole one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from audit_engine.digests.states import TierStates
from audit_engine.errors import EventError
from audit_engine.wire import decode
from rules.events import TierState
from rules.identity import LogId
from rules.policy import EMPTY, Policy
from seawall import connections
from seawall.agent import host
from seawall.agent.leadership import SharedLeadership
from seawall.agent.world import CLOCKWORK, open_cluster
from seawall.events.kafka import hear
from seawall.settings import Settings
from seawall.tier.following import followed
from tiering.cluster.host import HostSurvey
from tiering.cluster.interface import BrokerIdentity
from tiering.cluster.log_dirs import Surveyor, one_broker, read_identities
from tiering.cluster.topics import TopicFilter
from tiering.retention.facts import TierFacts
from tiering.retention.local_service import LocalTrim, PlannedTrim
from tiering.retention.plans import Planned
from tiering.retention.service import RemoteRetention
from tiering.retention.table_end import MetadataEnds, ReadToEnd
from tiering.retention.topic_watch import TopicWatch
from tiering.segments.digest import LogDigest
from tiering.uploader.one_log import Cluster

HEARD_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """The next act of each log; what follows is decided when that is done."""

    broker: BrokerIdentity
    expiry: tuple[Planned, ...]
    trim: tuple[PlannedTrim, ...]


class _Changes:
    """In the place of every port that changes something."""

    def __call__(self, *_: object) -> NoReturn:
        raise AssertionError("a plan changes nothing")

    head = mark_deleted = keeps_versions = delete_records = emit = __call__


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole(ReadToEnd):
    """A table that was read to its end before anything was asked of it."""

    def facts_and_digest(self, log: LogId) -> tuple[TierFacts, LogDigest | None]:
        facts, digest = ReadToEnd.facts_and_digest(self, log)
        return facts, None if digest is None else replace(digest, complete_from=0)


def planned_removals(settings: Settings, policy: Callable[[], Policy | None]) -> Removals:
    """Look, and say what would go. Raises StatedError where that cannot be told."""
    paths = host.log_dirs(settings.agent)
    identities, _ = read_identities(paths)
    broker = one_broker(identities, paths)
    cluster = open_cluster(settings, broker)
    declared = policy() or EMPTY
    leadership = SharedLeadership(cluster, broker_id=broker.broker_id, log_dirs=paths)
    surveyor = Surveyor(
        paths,
        topics=TopicFilter(exclude=settings.agent.exclude_topics),
        now_ns=lambda: CLOCKWORK.now_ms() * 1_000_000,
    )

    def survey() -> HostSurvey:
        found = surveyor.survey()
        leadership.surveyed(found)
        return found

    survey()  # so that the epochs on disk are known before anybody is asked who leads
    changes = _Changes()
    with followed(settings) as table:
        ends = MetadataEnds(offsets=cluster, topic=table.topic.name, topic_id=table.topic.topic_id)
        asked = _Whole(metadata=table.metadata, end_of=ends)
        expiry = RemoteRetention(
            broker_id=broker.broker_id,
            table=asked,
            publish_segment=changes,
            publish_log=changes,
            bury=changes,
            leadership=leadership,
            topics=TopicWatch(cluster, now_ms=CLOCKWORK.now_ms, gone_after_ms=0),
            metadata_topic=table.topic.name,
            survey=survey,
            objects=changes,
            policy=declared.effective,
            pace=changes,
            sink=changes,
            now_ms=CLOCKWORK.now_ms,
            new_id=CLOCKWORK.new_id,
        )
        trim = LocalTrim(
            survey=survey,
            cluster=Cluster(leadership=leadership, offsets=cluster, settings=cluster),
            table=asked,
            digests=_heard(settings),
            policy=declared.effective,
            objects=changes,
            requests=changes,
            sink=changes,
            now_ms=CLOCKWORK.now_ms,
            new_id=CLOCKWORK.new_id,
        )
        return Removals(broker=broker, expiry=expiry.plan(), trim=trim.plan())


def _heard(settings: Settings) -> TierStates:
    """What the agents said of their tables in the last hour."""
    states, mark = TierStates(), f'"kind":"{TierState.kind}"'.encode("ascii")
    config = connections.kafka_config(settings, client_id="seawall-tier")
    for each in hear(config, since_ms=CLOCKWORK.now_ms() - HEARD_MS):
        if each.value is not None and mark in each.value:
            try:
                states.hear(decode(each.value))
            except EventError:
                continue  # ingest keeps what cannot be read; a digest that is not heard keeps
    return states
