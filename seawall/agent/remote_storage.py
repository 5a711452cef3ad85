"""Whether a topic has Kafka's own tiered storage on (KIP-405), as its broker tells, for who reads log dirs.

It decides what the files say: with it, a replica's log start is its checkpoint's entry alone, as the log may
begin in the other tier; without it, the first segment on disk counts too. Taken for the other, each local
deletion of a tiered topic would look like a loss.

Asked once a minute of the broker, which on most clusters has none of it at all; else of a topic when it is
first seen, when the first offset on this disk moved, and every five minutes.

Owns when the cluster is asked. Refuses to guess: before the broker answered for the first time there is no
look at all, and a topic of which nothing was ever told is not known. What was told holds while nobody
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from seawall.agent.errors import StorageUntold
from tiering.cluster.host import HostSurvey
from tiering.cluster.interface import Cause, SettingsSource, TopicPartition, Unknown
from tiering.log.directory import DirectoryState

SYSTEM = "remote.log.storage.system.enable"
BROKER_EVERY_MS = 60_000
TOPIC_EVERY_MS = 300_000
PAUSE_MS = 30_000  # after no answer: each question may take as long as the client waits


class RemoteStorage:
    """For one thread. `trouble` says why it is not known of all topics; empty if it is."""

    def __init__(self, cluster: SettingsSource, *, broker_id: int, now_ms: Callable[[], int]) -> None:
        self._cluster = cluster
        self._broker_id = broker_id
        self._now_ms = now_ms
        self._system: bool | None = None
        self._was_answered = False
        self._broker_due_ms = 0
        self._topics: dict[str, tuple[bool, int]] = {}  # and when it is due again
        self._starts: Mapping[TopicPartition, tuple[str, int | None]] = {}
        self._paused_to_ms = 0
        self.trouble = ""

    def of(self, topic: str) -> bool | None:
        """Whether it is on; None: not known."""
        if self._system is False:
            return False
        known = self._topics.get(topic)
        return None if known is None else known[0]

    def surveyed(self, host: HostSurvey) -> None:
        """Ask what this survey needs. Raises StorageUntold while the broker has not answered once."""
        now_ms = self._now_ms()
        if now_ms >= max(self._broker_due_ms, self._paused_to_ms):
            self._ask_broker(now_ms)
        starts = {
            local.partition: (local.incarnation.topic_id, local.local_start)
            for log_dir in host.log_dirs
            for local in log_dir.partitions
            if local.state is DirectoryState.LIVE
        }
        moved = {each.topic for each, start in starts.items() if self._starts.get(each, start) != start}
        self._starts = starts
        topics = {each.topic for each in starts}
        self._topics = {topic: known for topic, known in self._topics.items() if topic in topics}
        if self._system is False:
            self.trouble = ""
            return
        due = {
            topic
            for topic in topics
            if topic in moved or topic not in self._topics or now_ms >= self._topics[topic][1]
        }
        if due and now_ms >= self._paused_to_ms:
            self._ask_topics(due, now_ms)
        if topics <= self._topics.keys():
            self.trouble = ""

    def _ask_broker(self, now_ms: int) -> None:
        found = self._cluster.broker_settings(self._broker_id)
        if isinstance(found, Unknown) and found.cause is Cause.NO_ANSWER and not self._was_answered:
            raise StorageUntold(broker_id=self._broker_id, why=found.reason)
        self._was_answered = True
        self._broker_due_ms = now_ms + BROKER_EVERY_MS
        if isinstance(found, Unknown):
            self._not_told(f"broker {self._broker_id}", found, now_ms)
            return
        said = found.entries.get(SYSTEM)
        self._system = None if said is None or said.value is None else said.value == "true"

    def _ask_topics(self, topics: Iterable[str], now_ms: int) -> None:
        for topic, found in self._cluster.topic_settings(topics).items():
            if not isinstance(found, Unknown):
                self._topics[topic] = (found.remote_storage_enable.value, now_ms + TOPIC_EVERY_MS)
            elif found.cause is not Cause.NO_SUCH_TOPIC:  # one that comes or goes is no trouble
                self._not_told(f"topic {topic}", found, now_ms)

    def _not_told(self, what: str, why: Unknown, now_ms: int) -> None:
        self.trouble = f"{what}: {why.reason}"
        if why.cause is Cause.NO_ANSWER:
            self._paused_to_ms = now_ms + PAUSE_MS
