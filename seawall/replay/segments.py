"""The topic of metadata, executed twice, once as agents do, and held against the table on this host.

Compaction may go on between two readings, and what it takes is missing in the second: then both are made
again. Owns the readings. Refuses to compare what was not read alike (TopicChanges).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seawall.agent.snapshots import FOLDER
from seawall.errors import SeawallError
from tiering.segments.kafka import SegmentsTopic, empty_table, read_to, topic_ends
from tiering.segments.proof import Against, Execution, against, standing
from tiering.segments.snapshot import Discarded, Why, load
from tiering.segments.table import ReferenceTable, TopicRecord
from workers.proof import Compared, compared

READINGS_MAX = 3
FOR_EVER_MS = 1 << 62  # a table is compared however old it is: nothing goes on from it


@dataclass(kw_only=True, eq=False)
class TopicChanges(SeawallError):
    """the topic {topic} was compacted during each of {readings} readings, so that no two were alike

    Nothing is known to be wrong. Try again when its cleaner has less to do.
    """

    topic: str
    readings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentsProof:
    """`again`: record by record, by two executions. `in_bulk`: the logs as they stand, by the agents' way."""

    records: int
    logs: int
    again: Compared
    in_bulk: Compared
    live: dict[int, Against] = field(default_factory=dict)  # by partition of the topic
    unread: tuple[Discarded, ...] = ()  # tables on this host that cannot be compared

    @property
    def live_logs(self) -> int:
        return sum(each.equal + len(each.differs) for each in self.live.values())


def rebuilt(
    config: Mapping[str, str], topic: SegmentsTopic, ends: Mapping[int, int]
) -> tuple[dict[int, Execution], ReferenceTable]:
    """One reading: its executions by partition, and the same in as few steps as an agent makes."""
    table, bulk = empty_table(topic, ends), empty_table(topic, ends)
    found = {each.partition: Execution(each, end=ends[each.partition]) for each in table.partitions()}
    in_bulk = {each.partition: each for each in bulk.partitions()}

    def apply(partition: int, records: Sequence[TopicRecord]) -> None:
        found[partition].apply_many(records)
        in_bulk[partition].apply_many([each for each in records if each.offset < ends[partition]])

    read_to(config, topic, ends, apply)
    return found, bulk


def prove(
    config: Mapping[str, str],
    topic: SegmentsTopic,
    state_dir: Path | None,
    *,
    say: Callable[[str], None] = lambda _: None,
) -> SegmentsProof:
    """Raises TopicChanges, or what reading the topic raises."""
    for _ in range(READINGS_MAX):
        ends = topic_ends(config, topic)
        first, bulk = rebuilt(config, topic, ends)
        say(f"executed {sum(len(each.steps) for each in first.values())} records once")
        second, _ = rebuilt(config, topic, ends)
        if all(each.offsets == second[partition].offsets for partition, each in first.items()):
            break
    else:
        raise TopicChanges(topic=topic.name, readings=READINGS_MAX)
    tables = ReferenceTable([each.table for each in first.values()])
    live, unread = _live(tables, topic, ends, state_dir)
    return SegmentsProof(
        records=sum(len(each.steps) for each in first.values()),
        logs=len(list(tables.logs())),
        again=compared(
            (step for each in first.values() for step in each.steps),
            (step for each in second.values() for step in each.steps),
        ),
        in_bulk=compared(standing(tables), standing(bulk)),
        live=live,
        unread=unread,
    )


def _live(
    tables: ReferenceTable, topic: SegmentsTopic, ends: Mapping[int, int], state_dir: Path | None
) -> tuple[dict[int, Against], tuple[Discarded, ...]]:
    found, unread = {}, []
    for partition in range(topic.partition_count) if state_dir is not None else ():
        assert state_dir is not None
        live = load(
            state_dir / FOLDER,
            topic.identity,
            partition,
            end=ends[partition],
            now_ms=time.time_ns() // 1_000_000,
            age_max_ms=FOR_EVER_MS,
        )
        if not isinstance(live, Discarded):
            found[partition] = against(tables, live)
        elif live.why is not Why.ABSENT:
            unread.append(live)
    return found, tuple(unread)
