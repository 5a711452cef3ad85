"""The topic of metadata executed once more: what the table came to behind each record, and how it stands.

    Execution   a table of its own, and a step for each record: the digest of the record's log, and findings
    standing    a step for each log as it stands at the end: digest, frontier and coverage
    against     an agent's table held against one made anew: each log that both know to the same record

A log of an agent's table that the topic has gone past cannot be told: compaction took what it stood on. It
is counted, and never called equal.

Owns these steps. Refuses to read a topic or a disk. Invariant: two executions of the same records have the
same steps, on any machine, in any process (docs/REPLAY.md).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rules.identity import LogId
from tiering.outcome import Inconclusive
from tiering.segments.coverage import coverage
from tiering.segments.findings import Finding
from tiering.segments.keys import parse_key
from tiering.segments.table import PartitionTable, ReferenceTable, TopicRecord
from tiering.segments.view import LogView
from workers.proof import Step


class Execution:
    """Of one partition, up to `end`. `apply_many` is what a follower is given."""

    def __init__(self, table: PartitionTable, *, end: int) -> None:
        self.table = table
        self.end = end
        self.offsets: list[int] = []
        self.steps: list[Step] = []

    def apply_many(self, records: Sequence[TopicRecord]) -> None:
        for record in records:
            if record.offset >= self.end:
                return
            self.offsets.append(record.offset)
            found = self.table.apply(*record)
            self.steps.append(Step(f"{self.table.partition}@{record.offset}", self._said(record, found)))

    def _said(self, record: TopicRecord, found: Sequence[Finding]) -> str:
        name = parse_key(record.key)
        cluster_id = self.table.topic.cluster_id
        log = None if name is None else LogId(cluster_id, name.topic_id, name.partition)
        digest = None if log is None else self.table.digest(log)
        told = [[each.reason.value, each.detail] for each in found]
        return json.dumps([digest and digest.hex(), told])


@dataclass(frozen=True, slots=True, kw_only=True)
class Differs:
    """A log of which an agent's table holds something else. `key`: the first record, by its place."""

    log: LogId
    at: str
    key: str
    rebuilt: str
    live: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """`gone_past`: logs whose records the topic has had since, which nobody can compare any more."""

    equal: int
    gone_past: int
    differs: tuple[Differs, ...]


def standing(table: ReferenceTable) -> Iterator[Step]:
    for log in sorted(table.logs()):
        of = table.of(log)
        assert of is not None
        digest, view = of.digest(log), of.view(log)
        assert digest is not None
        assert view is not None
        yield Step(_name(log), json.dumps([digest.hex(), digest.offset, *_reached(view)]))


def _reached(view: LogView) -> tuple[str, list[str]]:
    covered = coverage(view)
    if isinstance(covered, Inconclusive):
        return covered.reason, []
    reached = covered.frontier
    return repr(reached), [repr(each) for each in covered.pieces(reached.start, reached.offset)]


def against(rebuilt: ReferenceTable, live: PartitionTable) -> Against:
    equal = gone_past = 0
    differs = []
    for log in sorted({*live.logs(), *rebuilt.logs()}):
        table = rebuilt.of(log)
        assert table is not None
        if table.partition != live.partition:
            continue
        anew, known = table.digest(log), live.digest(log)
        if anew is not None and anew.offset >= live.position:
            gone_past += 1
        elif anew is not None and known is not None and anew.hex() == known.hex():
            equal += 1
        elif found := _first_difference(log, table, live):
            differs.append(found)
        else:
            equal += 1  # nothing of it is left, on either side
    return Against(equal=equal, gone_past=gone_past, differs=tuple(differs))


def _first_difference(log: LogId, rebuilt: PartitionTable, live: PartitionTable) -> Differs | None:
    here, there = dict(rebuilt.members(log)), dict(live.members(log))
    other = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
    if not other:
        return None
    places = {key: _place(log, key, rebuilt, live) for key in other}
    first = min(other, key=lambda key: (places[key], key))
    at = f"{live.partition}@{places[first]}" if places[first] >= 0 else f"partition {live.partition}"
    return Differs(log=log, at=at, key=first, rebuilt=here.get(first, "none"), live=there.get(first, "none"))


def _place(log: LogId, key: str, *tables: PartitionTable) -> int:
    """Where the record is that is followed, in the first table that follows one."""
    name = parse_key(key.encode("ascii"))
    for table in tables:
        if name is not None and name.segment_id is not None:
            found = table.followed_at(log, name.segment_id)
            if found is not None:
                return found
    return -1


def _name(log: LogId) -> str:
    return f"{log.topic_id}:{log.partition}"
