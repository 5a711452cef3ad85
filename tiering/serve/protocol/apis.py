"""Which requests there are here: key, versions, tables, and what becomes of each.

    answered   by us, from the store or with what a broker says
    refused    listed, since librdkafka fetches nothing from a broker that lists no Produce (KAFKA_FACTS 6)
    forwarded  unread to the group's coordinator, and its answer unread back
    asked      by us of brokers; of these a client is told nothing

What is in none of them is not listed, and a client that sends it all the same is hung up on, as by Kafka.

Owns the list. A forwarded request has no tables: all that is known is where its group's name stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tiering.serve.protocol import asking, fetching, session


class Fate(Enum):
    """What becomes of a request."""

    ANSWERED = "answered"
    REFUSED = "refused"
    FORWARDED = "forwarded"
    ASKED = "asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One request. `flexible_from`: the first version in flexible form."""

    key: int
    name: str
    versions: range
    flexible_from: int
    fate: Fate
    request: type | None = None
    response: type | None = None

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_from

    def answer_has_tags(self, version: int) -> bool:
        """Whether an answer's header has tagged fields: anybody must be able to read ApiVersions'."""
        return self.key != API_VERSIONS and self.is_flexible(version)


PRODUCE, FETCH, LIST_OFFSETS, METADATA = 0, 1, 2, 3
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP = 8, 9, 10, 11
HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, DESCRIBE_GROUPS = 12, 13, 14, 15
SASL_HANDSHAKE, API_VERSIONS, INIT_PRODUCER_ID, OFFSET_FOR_LEADER_EPOCH = 17, 18, 22, 23
DESCRIBE_ACLS, SASL_AUTHENTICATE, CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE = 29, 36, 68, 69
NEVER = 32767  # flexible


def _tabled(key: int, name: str, last: int, flexible_from: int, fate: Fate, *, first: int = 0) -> Api:
    home = next(each for each in (asking, fetching, session) if hasattr(each, f"{name}Request"))
    return Api(
        key=key,
        name=name,
        versions=range(first, last + 1),
        flexible_from=flexible_from,
        fate=fate,
        request=getattr(home, f"{name}Request"),
        response=getattr(home, f"{name}Response"),
    )


def _forwarded(key: int, name: str, last: int, flexible_from: int, *, first: int = 0) -> Api:
    versions = range(first, last + 1)
    return Api(key=key, name=name, versions=versions, flexible_from=flexible_from, fate=Fate.FORWARDED)


APIS: Mapping[int, Api] = {
    api.key: api
    for api in (
        _tabled(PRODUCE, "Produce", 13, 9, Fate.REFUSED, first=3),
        _tabled(FETCH, "Fetch", 17, 12, Fate.ANSWERED, first=4),
        _tabled(LIST_OFFSETS, "ListOffsets", 11, 6, Fate.ANSWERED, first=1),
        _tabled(METADATA, "Metadata", 13, 9, Fate.ANSWERED),
        _tabled(FIND_COORDINATOR, "FindCoordinator", 6, 3, Fate.ANSWERED),
        _tabled(SASL_HANDSHAKE, "SaslHandshake", 1, NEVER, Fate.ANSWERED),
        _tabled(API_VERSIONS, "ApiVersions", 4, 3, Fate.ANSWERED),
        _tabled(INIT_PRODUCER_ID, "InitProducerId", 6, 2, Fate.REFUSED),
        _tabled(OFFSET_FOR_LEADER_EPOCH, "OffsetForLeaderEpoch", 4, 4, Fate.ANSWERED, first=2),
        _tabled(DESCRIBE_ACLS, "DescribeAcls", 3, 2, Fate.ASKED, first=1),
        _tabled(SASL_AUTHENTICATE, "SaslAuthenticate", 2, 2, Fate.ANSWERED),
        _forwarded(OFFSET_COMMIT, "OffsetCommit", 10, 8, first=2),
        _forwarded(OFFSET_FETCH, "OffsetFetch", 10, 6, first=1),
        _forwarded(JOIN_GROUP, "JoinGroup", 9, 6),
        _forwarded(HEARTBEAT, "Heartbeat", 4, 4),
        _forwarded(LEAVE_GROUP, "LeaveGroup", 5, 4),
        _forwarded(SYNC_GROUP, "SyncGroup", 5, 4),
        _forwarded(DESCRIBE_GROUPS, "DescribeGroups", 6, 5),
        _forwarded(CONSUMER_GROUP_HEARTBEAT, "ConsumerGroupHeartbeat", 1, 0),
        _forwarded(CONSUMER_GROUP_DESCRIBE, "ConsumerGroupDescribe", 1, 0),
    )
}

# Of these, answers have the error code behind the throttle time (int32) from the version on. In the others it
# stands elsewhere, for each partition.
ERROR_BEHIND_THROTTLE: Mapping[int, int] = {
    JOIN_GROUP: 2,
    SYNC_GROUP: 1,
    HEARTBEAT: 1,
    LEAVE_GROUP: 1,
    CONSUMER_GROUP_HEARTBEAT: 0,
}
# These begin with an array, of groups or of what begins with a group's name.
GROUP_IN_ARRAY: Mapping[int, int] = {OFFSET_FETCH: 8, DESCRIBE_GROUPS: 0, CONSUMER_GROUP_DESCRIBE: 0}
