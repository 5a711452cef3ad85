"""Follows every partition of the topic of metadata, in a thread of its own.

Partitions are assigned, not shared out by a group: each agent reads all of them, and its place is in its own
table. Records of transactions that were not committed are passed over (nobody of ours writes any): compaction
would take them away, and two tables would differ. An open one holds the reading up; the lag says so.

Owns the consumer and the thread. Refuses to skip: a position that the topic no longer has, or that another
topic of the same name never had, ends the following (FollowingEnded), and the agent begins with nothing.

Invariant: `apply` gets the records of a partition in their order, each once; what goes wrong is tried again,
or is in `failure`, and never neither.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Thread
from types import TracebackType
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as ClientPartition

from tiering.cluster.quiet import QUIET
from tiering.segments.errors import FollowingEnded, SegmentsTopicSilent
from tiering.segments.findings import Finding
from tiering.segments.table import PartitionTable, ReferenceTable, TopicRecord
from tiering.segments.topic import SegmentsTopic
from tiering.segments.topic.kafka import TopicEnds, topic_ends
from tiering.segments.topic.progress import Progress

Apply: TypeAlias = Callable[[int, Sequence[TopicRecord]], object]

BATCH_RECORDS = 10_000
BATCH_WAIT_S = 0.2  # for a batch to fill up, while behind
POLL_S = 0.25  # so soon `stop` is heard
LOOK_AGAIN_S = 30.0  # at the topic's identity and ends
BACKOFF_S = (0.2, 0.5, 1.0, 2.0, 5.0)
SILENCE_MAX_S = 60.0  # of a replay
STEP_S = 0.5

_log = logging.getLogger(__name__)

_DEFAULTS = {"client.id": "seawall-agent", "fetch.wait.max.ms": "100"}
_ENDED = frozenset(
    {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._LOG_TRUNCATION}
)


class Follower:
    """Begins with its making. `positions`: of each partition the first offset that is wanted, else 0."""

    def __init__(
        self,
        config: Mapping[str, str],
        topic: SegmentsTopic,
        apply: Apply,
        *,
        positions: Mapping[int, int],
        look_again_s: float = LOOK_AGAIN_S,
    ) -> None:
        self._config = dict(config)
        self._topic = topic
        self._apply = apply
        self._look_again_s = look_again_s
        self._progress = Progress(
            topic.name,
            topic.partition_count,
            positions,
            away_max_s=topic.min_compaction_lag_ms / 2000,
        )
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="metadata-follow", daemon=True)
        self._thread.start()

    @property
    def topic_name(self) -> str:
        return self._topic.name

    @property
    def is_caught_up(self) -> bool:
        """Whether everything was applied that was there when the following began, and nothing ended it."""
        return self._progress.is_caught_up

    @property
    def failure(self) -> Exception | None:
        """Why it has ended, if it has."""
        return self._progress.failure

    @property
    def trouble(self) -> str | None:
        """What goes wrong now and is tried again."""
        return self._progress.trouble

    def lag(self) -> dict[int, int] | None:
        """Offsets behind each partition's end as last heard of; None before it was."""
        return self._progress.lag()

    def positions(self) -> dict[int, int]:
        """Of each partition the offset below which everything was applied."""
        return self._progress.positions()

    def wait_caught_up(self, timeout_s: float) -> bool:
        """Whether it is caught up, in time. Raises what ended it."""
        return self._progress.wait_caught_up(timeout_s)

    def wait_past(self, ends: Mapping[int, int], timeout_s: float) -> bool:
        """Whether everything below `ends` (see `topic_ends`) was applied, in time. Raises what ended it."""
        return self._progress.wait_past(ends, timeout_s)

    def stop(self) -> None:
        """Return when the thread has ended; nothing is applied after that."""
        self._stopping.set()
        self._thread.join()

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            before = self._progress.positions()
            try:
                self._follow()
            except (SegmentsTopicSilent, KafkaException) as trouble:
                self._progress.trouble = str(trouble)
                failures = 0 if self._progress.positions() != before else failures + 1
                self._stopping.wait(BACKOFF_S[min(failures, len(BACKOFF_S) - 1)])
            except Exception as failure:  # noqa: BLE001 the worker's edge: nobody else would hear of it
                _log.exception("following %s has ended", self._topic.name)
                self._progress.fail(failure)
                return

    def _follow(self) -> None:
        """Read until stopped. A KafkaException or a silence is for another try, with another client."""
        ends = TopicEnds(self._config, self._topic)
        self._progress.learn_ends(ends.ends(), time.monotonic())
        consumer = Consumer(self._settings(), logger=QUIET)
        try:
            consumer.assign(
                [
                    ClientPartition(self._topic.name, partition, position)
                    for partition, position in self._progress.positions().items()
                ]
            )
            look_at_s = time.monotonic() + self._look_again_s
            while not self._stopping.is_set():
                self._take(self._next_messages(consumer))
                if time.monotonic() >= look_at_s:
                    self._progress.learn_ends(ends.ends(), time.monotonic())
                    self._progress.trouble = None
                    look_at_s = time.monotonic() + self._look_again_s
        finally:
            consumer.close()

    def _next_messages(self, consumer: Consumer) -> list[Message]:
        if not self._progress.is_caught_up:
            return consumer.consume(BATCH_RECORDS, BATCH_WAIT_S)
        first = consumer.poll(POLL_S)
        return [] if first is None else [first, *consumer.consume(BATCH_RECORDS, 0)]

    def _take(self, messages: Sequence[Message]) -> None:
        records: dict[int, list[TopicRecord]] = {}
        at_end: dict[int, int] = {}
        for message in messages:
            error = message.error()
            partition, offset = message.partition(), message.offset()
            if error is None:
                assert partition is not None
                assert offset is not None
                record = TopicRecord(offset, message.key() or b"", message.value())
                records.setdefault(partition, []).append(record)
            elif error.code() == KafkaError._PARTITION_EOF:
                assert partition is not None
                assert offset is not None
                at_end[partition] = offset
            elif error.code() in _ENDED:
                why = f"partition {partition}: {error.str()}"
                raise FollowingEnded(what=self._topic.name, why=why)
            else:
                self._progress.trouble = error.str()  # librdkafka tries again by itself
        now_s = time.monotonic()
        for partition, batch in records.items():
            self._progress.check_unbroken(partition, now_s)
            self._apply(partition, batch)
            self._progress.passed(partition, batch[-1].offset + 1)
            self._progress.trouble = None
        for partition, position in at_end.items():
            # Markers and what compaction left of a batch are passed without a record.
            self._progress.at_end(partition, position, now_s)

    def _settings(self) -> dict[str, Any]:
        return {
            **_DEFAULTS,
            **self._config,
            "group.id": "seawall-segments",  # librdkafka wants one; nothing is joined or committed
            "enable.auto.commit": "false",
            "enable.auto.offset.store": "false",
            "auto.offset.reset": "error",
            "enable.partition.eof": "true",
            "isolation.level": "read_committed",
            "check.crcs": "true",
            "allow.auto.create.topics": "false",
            "error_cb": self._on_error,
        }

    def _on_error(self, error: KafkaError) -> None:
        self._progress.trouble = error.str()


def empty_table(topic: SegmentsTopic, ends: Mapping[int, int]) -> ReferenceTable:
    """A table that a replay from nothing fills; `ends` are the topic's at its beginning (`topic_ends`)."""
    return ReferenceTable(
        [
            PartitionTable(topic.identity, number, complete_from=ends[number])
            for number in range(topic.partition_count)
        ]
    )


def replay(
    config: Mapping[str, str],
    topic: SegmentsTopic,
    *,
    progress: Callable[[int, int], None] | None = None,
    on_finding: Callable[[int, Finding], None] | None = None,
    silence_max_s: float = SILENCE_MAX_S,
) -> ReferenceTable:
    """The topic's table as it is now, read once from its beginning to its end.

    `progress` hears how many offsets are passed, of how many; `on_finding` of what is not followed, by
    partition. Raises SegmentsTopicSilent after so long without a record.
    """
    ends = topic_ends(config, topic)
    table = empty_table(topic, ends)
    of_partition = {each.partition: each for each in table.partitions()}

    def apply(partition: int, records: Sequence[TopicRecord]) -> None:
        for finding in of_partition[partition].apply_many(records):
            if on_finding is not None:
                on_finding(partition, finding)

    reached = read_to(config, topic, ends, apply, progress=progress, silence_max_s=silence_max_s)
    for partition, position in reached.items():
        of_partition[partition].skip_to(position)
    return table


def read_to(
    config: Mapping[str, str],
    topic: SegmentsTopic,
    ends: Mapping[int, int],
    apply: Apply,
    *,
    progress: Callable[[int, int], None] | None = None,
    silence_max_s: float = SILENCE_MAX_S,
) -> dict[int, int]:
    """Everything from the beginning to `ends`, and perhaps more; how far that was. As `replay` raises."""
    with Follower(config, topic, apply, positions={}) as follower:
        _wait_with_progress(follower, ends, progress, silence_max_s)
        return follower.positions()


def _wait_with_progress(
    follower: Follower,
    ends: Mapping[int, int],
    progress: Callable[[int, int], None] | None,
    silence_max_s: float,
) -> None:
    total, before = sum(ends.values()), -1
    heard_s = time.monotonic()
    while not follower.wait_past(ends, STEP_S):
        done = sum(min(end, follower.positions()[each]) for each, end in ends.items())
        if done != before:
            before, heard_s = done, time.monotonic()
        if progress is not None:
            progress(done, total)
        if time.monotonic() - heard_s > silence_max_s:
            why = follower.trouble or "its leaders send nothing"
            raise SegmentsTopicSilent(what=follower.topic_name, act="read to its end", why=why)
    if progress is not None:
        progress(total, total)
