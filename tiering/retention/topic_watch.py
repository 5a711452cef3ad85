"""Whether a topic id is still there: GONE is said only after every look for a while has missed it.

A broker that has just started, or lags behind the controller, knows less than there is, and one that knows an
older topic of the same name would make a newer one look deleted. Neither lasts: so what is missed once is not
known, and what every answer since has missed for GONE_AFTER_MS is gone.

Owns this memory, of one process: another begins again. Refuses to count silence: the time then starts anew.

Invariant: GONE follows at least two answers, GONE_AFTER_MS apart, with no other answer between.
"""

from __future__ import annotations

from collections.abc import Callable

from tiering.cluster.interface import Cause, DescribedTopic, TopicDescriber, Unknown
from tiering.retention.remote import Presence

GONE_AFTER_MS = 600_000


class TopicWatch:
    """Asks, and remembers since when a topic id has been missing. For one thread."""

    def __init__(
        self, describer: TopicDescriber, *, now_ms: Callable[[], int], gone_after_ms: int = GONE_AFTER_MS
    ) -> None:
        self._describer = describer
        self._now_ms = now_ms
        self._gone_after_ms = gone_after_ms
        self._missing_since_ms: dict[str, int] = {}  # by topic id; bounded by the topics of the table

    def presence(self, topic: str, topic_id: str) -> Presence:
        found = self._describer.describe_topics([topic])[topic]
        if isinstance(found, DescribedTopic) and found.topic_id == topic_id:
            self._missing_since_ms.pop(topic_id, None)
            return Presence.THERE
        if isinstance(found, Unknown) and found.cause is not Cause.NO_SUCH_TOPIC:
            self._missing_since_ms.pop(topic_id, None)
            return Presence.UNKNOWN
        since_ms = self._missing_since_ms.setdefault(topic_id, self._now_ms())
        return Presence.GONE if self._now_ms() - since_ms >= self._gone_after_ms else Presence.UNKNOWN
