"""Which topics an agent looks at: patterns that include, patterns that exclude, and internal topics never.

A pattern is a topic's name with `*` for any letters, `?` for one, `[abc]` for one of these. A topic is looked
at when it matches an including pattern and no excluding one.

Invariant: what Kafka, or Seawall, keeps its own state in is taken by no pattern, whatever it says. Copying
those logs would make one cluster's offsets and segments look like another's, and they are compacted anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Protocol

from tiering.log.directory import KRAFT_METADATA_TOPIC

# By name, not by their two underscores: tools have topics of that look which people do want to keep.
INTERNAL_TOPICS = frozenset(
    {
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
        "__remote_log_metadata",
        KRAFT_METADATA_TOPIC,
    }
)
OUR_PREFIX = "__seawall_"


class Topics(Protocol):
    """Which topics are looked at, by name."""

    def takes(self, topic: str) -> bool: ...


class EveryTopic:
    """For who only looks. The metadata log is no topic's: its directory is another kind."""

    def takes(self, topic: str) -> bool:
        return topic != KRAFT_METADATA_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFilter:
    """Which topics are looked at."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()

    def takes(self, topic: str) -> bool:
        if is_internal(topic):
            return False
        return _any_matches(self.include, topic) and not _any_matches(self.exclude, topic)


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS or topic.startswith(OUR_PREFIX)


def _any_matches(patterns: tuple[str, ...], topic: str) -> bool:
    return any(fnmatchcase(topic, pattern) for pattern in patterns)
