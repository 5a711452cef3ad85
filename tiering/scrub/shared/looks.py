"""The looks of a run as workers elsewhere do them.

    submit    a task goes out, with its share of the rate and the moment until which it is waited for
    collect   answers come in; what nobody answers in time, or cannot be sent, is unclear

What a worker finds wrong is looked at by this process, too, and only that counts: a worker with the wrong
bucket, or a host with bad memory, raises no alarm. What it finds right is taken as it is.

Owns the way of a task. Refuses to go on without workers: after QUIET_S without a sign of any, what is out is
unclear, and the run ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Protocol

from rules.words import ScrubDepth
from tiering.outcome import Failed
from tiering.scrub.look import Looked, objects_of
from tiering.scrub.looks import Due, Ended, IsLive, Looks
from tiering.scrub.pace import Pace
from tiering.scrub.shared.board import QUIET_S, Board, Sent, untold
from tiering.scrub.shared.words import Hail, Task, Word, decode_word, encode_task
from tiering.segments.errors import SegmentMetadataError
from tiering.segments.records import SegmentId, SegmentRecord

TICK_S = 0.5


class Post(Protocol):
    """The two topics, as the coordinator uses them."""

    def send(self, segment_id: SegmentId, run: str, value: bytes) -> None:
        """Hand a task over; whether it got there is said by `refused`."""

    def refused(self) -> Sequence[tuple[SegmentId, str]]:
        """Tasks that did not get there, since the last time, and why."""

    def receive(self, timeout_s: float) -> Sequence[bytes]:
        """What came in the topic of answers, waiting for the first."""


def await_workers(post: Post, board: Board, wait_s: float, *, clock: Callable[[], float]) -> bool:
    """Whether one was heard of, at once or within the time."""
    last_moment_s = clock() + wait_s
    while not board.threads(now_s := clock()):
        if now_s >= last_moment_s:
            return False
        for value in post.receive(min(TICK_S, last_moment_s - now_s)):
            word = _decoded(value)
            if isinstance(word, Hail):
                board.hailed(word, clock())
    return True


class SharedLooks:
    """For one thread. `local` looks again at what is said to be wrong."""

    def __init__(
        self,
        post: Post,
        board: Board,
        local: Looks,
        pace: Pace,
        *,
        depth: ScrubDepth,
        bucket: str,
        clock: Callable[[], float],
        now_ms: Callable[[], int],
    ) -> None:
        self._post, self._board, self._local, self._pace = post, board, local, pace
        self._depth, self._bucket = depth, bucket
        self._clock, self._now_ms = clock, now_ms
        self._stopped: str | None = None
        self._first: dict[SegmentId, Looked] = {}  # by a worker, of what is looked at again here
        self.unreadable = 0

    @property
    def out(self) -> int:
        return self._board.out + self._local.out

    @property
    def stopped(self) -> str | None:
        return self._stopped

    def room(self) -> int:
        if self._stopped is not None or self._local.room() <= 0:
            return 0
        return self._board.room(self._clock())

    def submit(self, due: Due, record: SegmentRecord, is_live: IsLive) -> None:
        now_s = self._clock()
        share = self._board.share(now_s)
        within_s = self._board.within_s(record, self._depth, share)
        live = {kind for kind, _ in objects_of(record) if is_live(f"{record.key_stem}.{kind.value}")}
        task = Task(
            run=self._board.run,
            record=record,
            depth=self._depth,
            bucket=self._bucket,
            live=frozenset(live),
            until_ms=self._now_ms() + int(within_s * 1000),
            bytes_per_s=share,
        )
        self._board.sent(due, task, now_s + within_s)
        self._post.send(due.segment_id, task.run, encode_task(task))

    def collect(self, timeout_s: float) -> list[Ended]:
        ended = [self._confirmed(each) for each in (self._local.collect(0.0) if self._local.out else ())]
        for value in self._post.receive(0.0 if ended else timeout_s):
            self._heard(value, ended)
        for segment_id, why in self._post.refused():
            if sent := self._board.withdrawn(segment_id):
                ended.append(_unclear(sent, f"its task could not be sent: {why}"))
        now_s = self._clock()
        for sent in self._board.overdue(now_s):
            ended.append(_unclear(sent, "no worker answered for it in time"))
        if self._board.is_quiet(now_s):
            self._stopped = f"no worker has been heard of for {QUIET_S:.0f} s"
            ended += [_unclear(sent, self._stopped) for sent in self._board.cleared()]
        if self._pace.is_over:
            ended += [Ended(sent.due, None) for sent in self._board.cleared()]
        return ended

    def __enter__(self) -> SharedLooks:
        self._board.listens(self._clock())  # not while the bucket was listed
        self._local.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._local.__exit__(kind, error, trace)

    def _heard(self, value: bytes, ended: list[Ended]) -> None:
        word = _decoded(value)
        if word is None:
            self.unreadable += 1
            return
        if isinstance(word, Hail):
            self._board.hailed(word, self._clock())
            return
        answered = self._board.answered(word)
        if answered is None:
            return
        sent, looked = answered
        self._pace.came_elsewhere(looked.read_bytes)
        if any(isinstance(each.outcome, Failed) for each in looked.checked):
            self._first[sent.due.segment_id] = looked
            self._local.submit(sent.due, sent.task.record, lambda _: False)
            return
        self._pace.got_somewhere()
        ended.append(Ended(sent.due, looked))

    def _confirmed(self, here: Ended) -> Ended:
        """What this process saw, with what the worker had read for it."""
        first = self._first.pop(here.due.segment_id)
        looked = here.looked
        if looked is None:
            return here
        read_bytes = first.read_bytes + looked.read_bytes
        return Ended(
            here.due,
            Looked(checked=looked.checked, read_bytes=read_bytes, no_answer=looked.no_answer, by=first.by),
        )


def _decoded(value: bytes) -> Word | None:
    """None: of a newer worker, or somebody else's. A task that it answers runs out of time."""
    try:
        return decode_word(value, "an answer")
    except SegmentMetadataError:
        return None


def _unclear(sent: Sent, why: str) -> Ended:
    return Ended(sent.due, untold(sent.task, why))
