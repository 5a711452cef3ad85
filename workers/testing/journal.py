"""What handlers did, in the order in which they did it: what the checks are made on."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from workers.consumer.outcomes import DeadLetter, Done, Result, Skip
from workers.consumer.records import Record


class Act(Enum):
    BEGIN = "begin"
    DONE = "done"  # by Done or Skip
    LETTER = "letter"  # a dead letter was asked for; whether it is durable, the topic says
    AGAIN = "again"  # by Retry, by raising or parked
    GIVEN_UP = "given up"  # its process went


@dataclass(frozen=True, slots=True)
class Entry:
    member: str
    record: Record
    act: Act


@dataclass(slots=True)
class Journal:
    entries: list[Entry] = field(default_factory=list)

    def begin(self, member: str, record: Record) -> None:
        self.entries.append(Entry(member, record, Act.BEGIN))

    def end(self, member: str, record: Record, result: Result) -> None:
        act = Act.DONE if isinstance(result, Done | Skip) else Act.AGAIN
        self.entries.append(Entry(member, record, Act.LETTER if isinstance(result, DeadLetter) else act))

    def give_up(self, member: str, record: Record) -> None:
        self.entries.append(Entry(member, record, Act.GIVEN_UP))
