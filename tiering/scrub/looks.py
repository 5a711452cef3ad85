"""Who looks at the segments of a run: threads of this process, or workers elsewhere (`shared`).

A run submits what is due, collects what came to its end, and judges it; where a look is done is not its
business. What is given up for want of time comes back without a look.

Owns the interface, and the threads. Invariant: each segment that was submitted is collected once, or
`collect` has raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import NamedTuple, Protocol

from rules.identity import LogId
from rules.words import ScrubDepth
from tiering.scrub.look import Looked, Looker
from tiering.scrub.pace import GivenUp, Pace
from tiering.segments.records import SegmentId, SegmentRecord
from workers.consumer.tasks import Tasks

IsLive = Callable[[str], bool]  # whether this run's listing had a key just as its record has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A segment to look at, and about what reading it costs."""

    name: str
    log: LogId
    segment_id: SegmentId
    size_bytes: int
    metadata_offset: int  # of its record


class Ended(NamedTuple):
    """What became of one. None: it was given up, and is left for another run."""

    due: Due
    looked: Looked | None


class Looks(Protocol):
    """Used by one thread, within `with`; leaving it begins nothing more."""

    @property
    def out(self) -> int:
        """Segments that were submitted and are not collected yet."""

    @property
    def stopped(self) -> str | None:
        """Why nobody looks any more; None while somebody does."""

    def room(self) -> int:
        """How many more may be submitted now."""

    def submit(self, due: Due, record: SegmentRecord, is_live: IsLive) -> None: ...

    def collect(self, timeout_s: float) -> list[Ended]:
        """What has ended since, waiting up to `timeout_s` for the first."""

    def __enter__(self) -> Looks: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class LocalLooks:
    """Threads of this process."""

    stopped: str | None = None

    def __init__(self, looker: Looker, pace: Pace, *, depth: ScrubDepth, threads: int) -> None:
        self._looker, self._pace, self._depth = looker, pace, depth
        self._at_most = 2 * threads  # one that runs and one that waits, for each
        self._tasks = Tasks[Due, Looked | None](threads=threads)

    @property
    def out(self) -> int:
        return self._tasks.out

    def room(self) -> int:
        return self._at_most - self.out

    def submit(self, due: Due, record: SegmentRecord, is_live: IsLive) -> None:
        self._tasks.submit(due, partial(self._looked, record, is_live))

    def collect(self, timeout_s: float) -> list[Ended]:
        return [Ended(due, looked) for due, looked in self._tasks.collect(timeout_s)]

    def __enter__(self) -> LocalLooks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tasks.__exit__(kind, error, trace)

    def _looked(self, record: SegmentRecord, is_live: IsLive) -> Looked | None:
        try:
            self._pace.check()
            looked = self._looker.look(record, self._depth, is_live)
            self._pace.got_somewhere()
            return looked
        except GivenUp:
            return None
