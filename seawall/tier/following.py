"""The topic of metadata for as long as one verb runs: read to its end, again at each look, and written to.

Owns the follower, the appender and the table behind them. Refuses to answer from a table that is behind the
topic's end as it was when asked.

Invariant: what `known` and `view` say includes every record that was in the topic before the last `read_on`,
and each `known` reads on first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from rules.identity import LogId
from seawall.connections import kafka_config
from seawall.settings import Settings
from tiering.orphans.judge import Known, known_of
from tiering.segments.errors import SegmentsTopicSilent
from tiering.segments.kafka import Follower, KafkaAppender, check_topic, empty_table, topic_ends
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.segments.topic import SegmentsTopic
from tiering.segments.topic.kafka import TopicEnds
from tiering.segments.view import LogView
from tiering.uploader.metadata import Metadata

READ_DEADLINE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """One verb's table, and its way to write."""

    topic: SegmentsTopic
    metadata: Metadata
    follower: Follower
    ends_now: Callable[[], Mapping[int, int]]

    def read_on(self) -> Mapping[int, int]:
        """Read up to where the topic ends now; where that is, by partition."""
        ends = self.ends_now()
        if not self.follower.wait_past(ends, READ_DEADLINE_S):
            why = self.follower.trouble or f"its leaders sent nothing for {READ_DEADLINE_S:g} s"
            raise SegmentsTopicSilent(what=self.topic.name, act="read to its end", why=why)
        reached = self.follower.positions()
        with self.metadata.table() as tables:
            for table in tables.partitions():
                table.skip_to(reached[table.partition])
        return ends

    def logs(self) -> tuple[LogId, ...]:
        with self.metadata.table() as tables:
            return tuple(sorted(tables.logs()))

    def view(self, log: LogId) -> LogView | None:
        return self.metadata.view(log)

    def label(self, log: LogId) -> str | None:
        """The topic's name, as the log's last record has it; None if nothing of it can be read."""
        view = self.view(log)
        if view is None:
            return None
        if view.record is not None:
            return view.record.topic
        records = (self.segment(log, each.segment_id) for each in view.segments())
        return next((record.topic for record in records if record is not None), None)

    def committed(self, log: LogId) -> frozenset[str]:
        """The segments of a log whose copies count."""
        view = self.view(log)
        finished = view.finished if view is not None else None
        return frozenset(
            () if finished is None else (finished.segment_id(row) for row in range(len(finished.keys)))
        )

    # What `tiering.orphans.clean` asks.

    def look(self, log: LogId) -> Known:
        ends = self.read_on()
        return self.known(log, ends)

    def known(self, log: LogId, ends: Mapping[int, int]) -> Known:
        """What the table says of a log, given the ends that it was read up to."""
        with self.metadata.table() as tables:
            table = tables.of(log)
            assert table is not None, "this table has every partition of the topic"
            return known_of(log, table, end_offset=ends[table.partition])

    def segment(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        with self.metadata.table() as tables:
            table = tables.of(log)
            return None if table is None else table.segment(log, segment_id)

    def publish(self, record: SegmentRecord) -> int:
        return self.metadata.publish(record)


@contextmanager
def followed(settings: Settings) -> Iterator[Followed]:
    """The topic, which must be there, read to its end."""
    config = kafka_config(settings, client_id="seawall-tier")
    topic = check_topic(config)
    table = empty_table(topic, topic_ends(config, topic))
    with ExitStack() as opened:
        appender = opened.enter_context(KafkaAppender(config, topic))
        metadata = Metadata(table, appender)
        follower = opened.enter_context(Follower(config, topic, metadata.applied, positions={}))
        found = Followed(
            topic=topic,
            metadata=metadata,
            follower=follower,
            ends_now=TopicEnds(config, topic).ends,
        )
        found.read_on()
        yield found
