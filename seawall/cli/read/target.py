"""Which logs of the tier a user means by `TOPIC` or `TOPIC:PARTITION`.

A topic's name is a label: deleted and made again, it is another topic. Where one of them is left, it is the
one that is meant, and the others are named; where it cannot be told, the user is asked.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from seawall.cli.read.errors import PartitionNotTiered, TopicAmbiguous, TopicNotTiered
from tiering.segments.records import LogId, LogRecord
from tiering.segments.table import ReferenceTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The logs to read, by partition; and topic ids of the same name that are not read."""

    topic: str
    topic_id: str
    logs: tuple[LogId, ...]
    passed_over: tuple[str, ...]


def parse_target(text: str) -> tuple[str, int | None]:
    """`orders` or `orders:3`; a colon is in no topic's name."""
    topic, colon, partition = text.partition(":")
    if not topic or (colon and not (partition.isascii() and partition.isdigit())):
        raise ValueError(f"{text!r} is not TOPIC or TOPIC:PARTITION")
    return topic, int(partition) if colon else None


def find_target(table: ReferenceTable, topic: str, partition: int | None, topic_id: str | None) -> Target:
    """Raises ReadTargetError where nothing, or nothing certain, is meant."""
    named = _logs_by_name(table)
    by_id = named.get(topic, {})
    if topic_id is not None:
        by_id = {topic_id: by_id[topic_id]} if topic_id in by_id else {}
    if not by_id:
        raise TopicNotTiered(topic=topic, hint=_hint(topic, topic_id, named))
    alive = [each for each, records in by_id.items() if not _is_deleted(records)]
    candidates = alive or list(by_id)
    if len(candidates) > 1:
        raise TopicAmbiguous(topic=topic, ids="; ".join(_described(each, by_id[each]) for each in candidates))
    chosen = candidates[0]
    logs = sorted(by_id[chosen], key=lambda log: log.partition)
    if partition is not None:
        tiered = ", ".join(str(log.partition) for log in logs)
        logs = [log for log in logs if log.partition == partition]
        if not logs:
            raise PartitionNotTiered(topic=topic, topic_id=chosen, partition=partition, tiered=tiered)
    others = tuple(_described(each, by_id[each]) for each in by_id if each != chosen)
    return Target(topic=topic, topic_id=chosen, logs=tuple(logs), passed_over=others)


_Records = Mapping[LogId, LogRecord]


def _logs_by_name(table: ReferenceTable) -> dict[str, dict[str, dict[LogId, LogRecord]]]:
    named: dict[str, dict[str, dict[LogId, LogRecord]]] = defaultdict(lambda: defaultdict(dict))
    for log in table.logs():
        view = table.view(log)
        if view is not None and view.record is not None:
            named[view.record.topic][log.topic_id][log] = view.record
    return named


def _is_deleted(records: _Records) -> bool:
    return all(record.topic_deleted_at_ms is not None for record in records.values())


def _described(topic_id: str, records: _Records) -> str:
    gone = ", deleted" if _is_deleted(records) else ""
    return f"{topic_id} ({len(records)} partition{'s' if len(records) > 1 else ''}{gone})"


def _hint(topic: str, topic_id: str | None, named: Mapping[str, Mapping[str, _Records]]) -> str:
    if topic_id is not None and topic in named:
        return f" under id {topic_id}; of this name it has {', '.join(named[topic])}"
    near = difflib.get_close_matches(topic, list(named), n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; it has {', '.join(sorted(named)[:10])}" if named else "; it is empty"
