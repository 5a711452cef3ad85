"""What the loop needs of the world: where records come from, who runs handlers, where dead letters go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from workers.consumer.commits import CommitAnswer, CommitPoint
from workers.consumer.outcomes import Result
from workers.consumer.records import Partition, Record
from workers.consumer.work import Work


class SourceBroken(Exception):
    """The client cannot go on: the whole is restarted."""


class ExecutorBroken(Exception):
    """Handlers cannot be run any more, or one was lost with its process: the whole is restarted."""


class Start(NamedTuple):
    """What the group had committed of a partition; None where nothing, or where nobody could say."""

    offset: int | None = None
    metadata: str = ""
    leader_epoch: int = -1


class Polled(NamedTuple):
    """In each partition in the log's order. `ends` are offsets below which nothing is left."""

    records: Sequence[Record] = ()
    ends: Sequence[tuple[Partition, int]] = ()


class Listener(Protocol):
    """Called by the source, and only from within `poll` and `close`."""

    def assigned(self, starts: Mapping[Partition, Start]) -> None: ...

    def revoked(self, partitions: Collection[Partition]) -> None:
        """They are still ours until this returns."""

    def lost(self, partitions: Collection[Partition]) -> None:
        """They are somebody else's already: nothing may be committed."""

    def committed(self, answers: Sequence[CommitAnswer]) -> None: ...


class Source(Protocol):
    def open(self, listener: Listener) -> None: ...

    def poll(self, records_max: int, timeout_s: float) -> Polled:
        """What there is, at once if there is something. With 0 records it only keeps the membership alive."""

    def pause(self, partitions: Collection[Partition]) -> None: ...

    def resume(self, partitions: Collection[Partition]) -> None: ...

    def commit(self, points: Mapping[Partition, CommitPoint]) -> None:
        """Ask for it; the answer comes to the listener."""

    def commit_and_wait(
        self, points: Mapping[Partition, CommitPoint], *, deadline_s: float
    ) -> Sequence[CommitAnswer]:
        """The answer for each point, an error where none came in time."""

    def close(self) -> None:
        """Leave the group. The listener hears of what is still assigned."""


class Executor(Protocol):
    """Runs handlers: in threads, on an event loop or in processes. Nothing that it is given is dropped."""

    @property
    def capacity(self) -> int:
        """How many pieces of work it wants to hold: those that run, and a few so that none waits for us."""

    def submit(self, works: Sequence[Work]) -> None: ...

    def collect(self, timeout_s: float) -> Sequence[tuple[Work, Result]]:
        """What is finished, waiting up to `timeout_s` for the first. Raises ExecutorBroken."""

    def close(self, *, deadline_s: float) -> int:
        """End when what was given is finished, or at the deadline; how many handlers still run then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A record that is given up: what it was, from where, why, and after how many attempts."""

    record: Record
    reason: str
    attempts: int


class LetterAnswer(NamedTuple):
    """`number` is the work's; `error` is None when the letter is durable."""

    number: int
    error: str | None


class DeadLetters(Protocol):
    def send(self, number: int, letter: Letter) -> None: ...

    def answers(self) -> Sequence[LetterAnswer]:
        """What became of letters since the last time; does not wait."""

    def close(self, *, deadline_s: float) -> None: ...
