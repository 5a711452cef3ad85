"""The coordinator's board: which workers are there, what is out, how much more may be, whose answer counts.

    Board.hailed       a worker was heard of; it counts for HEARD_S
    Board.room         how many tasks more; Board.share the pace of each
    Board.answered     what an answer comes to, if it is one to a task that is out
    Board.overdue      what nobody answered in time

Pure: it is told the time. Owns these decisions. Refuses to send, to wait or to judge.

The rate of a run is shared out by looks: of `t` threads that are there each gets a `t`th of it with its
task, and no more tasks are out than the rate has shares for. So all of them together never read faster than
the rate, while workers come and go; a share that nobody uses is lost until its task ends. Without a rate each
thread has a task that runs and one that waits.

Invariant: each task that was sent leaves the board once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rules.words import ScrubDepth
from tiering.outcome import Inconclusive, Verified
from tiering.scrub.damage import Checked, Reason
from tiering.scrub.look import Looked, objects_of, size_of
from tiering.scrub.looks import Due
from tiering.scrub.shared.words import Answer, Hail, Seen, Task
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.store.keys import ObjectKind

HAIL_S = 3.0  # so often a worker says that it is there
HEARD_S = 15.0  # so long its word counts
QUIET_S = 60.0  # nobody heard of for so long: nobody will answer
ANSWER_S = 3600.0
TASKS_MAX = 2048  # out at once
LOOKS_EACH = 3  # at a share of the rate: a look, a second one at damage, and room
WORKERS_MAX = 4096  # that are kept count of


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A task that is out, by whom it was due and until when somebody waits for it."""

    due: Due
    task: Task
    until_s: float


class Board:
    """Of one run. `rate` is bytes a second, of all looks together."""

    def __init__(self, *, run: str, rate: int | None = None, answer_s: float = ANSWER_S) -> None:
        self.run, self._rate, self._answer_s = run, rate, answer_s
        self._sent: dict[SegmentId, Sent] = {}
        self._heard: dict[str, tuple[int, float]] = {}  # threads, and when
        self._heard_s = 0.0
        self.ignored = 0  # answers of other runs, to nothing that is out, or for a second time

    @property
    def out(self) -> int:
        return len(self._sent)

    def hailed(self, hail: Hail, now_s: float) -> None:
        if hail.worker in self._heard or len(self._heard) < WORKERS_MAX:
            self._heard[hail.worker] = hail.threads, now_s
            self._heard_s = now_s

    def listens(self, now_s: float) -> None:
        """From now on somebody would be heard."""
        self._heard_s = now_s

    def threads(self, now_s: float) -> int:
        """Of all workers that are there."""
        self._heard = {
            name: (threads, at_s) for name, (threads, at_s) in self._heard.items() if now_s - at_s < HEARD_S
        }
        return sum(threads for threads, _ in self._heard.values())

    def workers(self, now_s: float) -> list[str]:
        self.threads(now_s)
        return sorted(self._heard)

    def is_quiet(self, now_s: float) -> bool:
        """Whether nobody has been heard of for so long that nobody will answer."""
        return now_s - self._heard_s >= QUIET_S

    def share(self, now_s: float) -> int | None:
        """The pace of the next look, bytes a second; never more than is left of the rate."""
        if self._rate is None:
            return None
        return max(1, min(self._rate // max(1, self.threads(now_s)), self._rate - self._given))

    def room(self, now_s: float) -> int:
        """How many tasks more may be sent."""
        threads = self.threads(now_s)
        if not threads:
            return 0
        if self._rate is None:
            return max(0, min(2 * threads, TASKS_MAX) - self.out)
        shares_left = (self._rate - self._given) // max(1, self._rate // threads)
        return max(0, min(shares_left, min(threads, TASKS_MAX) - self.out))

    @property
    def _given(self) -> int:
        """Of the rate, to tasks that are out."""
        return sum(each.task.bytes_per_s or 0 for each in self._sent.values())

    def within_s(self, record: SegmentRecord, depth: ScrubDepth, share: int | None) -> float:
        """How long an answer is waited for: at a small share a large segment takes its time."""
        if share is None or depth is not ScrubDepth.DEEP:
            return self._answer_s
        return self._answer_s + LOOKS_EACH * size_of(record) / share

    def sent(self, due: Due, task: Task, until_s: float) -> None:
        assert due.segment_id not in self._sent, "a segment is due once in a run"
        self._sent[due.segment_id] = Sent(due=due, task=task, until_s=until_s)

    def answered(self, answer: Answer) -> tuple[Sent, Looked] | None:
        """What it comes to; None where it is not of this run, or to nothing that is out."""
        if answer.run != self.run or answer.segment_id not in self._sent:
            self.ignored += 1
            return None
        sent = self._sent.pop(answer.segment_id)
        return sent, _looked(sent.task, answer)

    def overdue(self, now_s: float) -> list[Sent]:
        """What nobody answered in time; it is off the board."""
        late = [each for each in self._sent.values() if now_s >= each.until_s]
        for each in late:
            del self._sent[each.due.segment_id]
        return late

    def withdrawn(self, segment_id: SegmentId) -> Sent | None:
        """One that did not get out after all."""
        return self._sent.pop(segment_id, None)

    def cleared(self) -> list[Sent]:
        """All that is out, off the board."""
        found, self._sent = list(self._sent.values()), {}
        return found


def untold(task: Task, why: str, *, by: str | None = None) -> Looked:
    """Nobody's word: each object is unclear."""
    checked = tuple(
        Checked(
            record=task.record,
            kind=kind,
            key=f"{task.record.key_stem}.{kind.value}",
            ref=ref,
            depth=task.depth,
            outcome=Inconclusive(why),
            reason=Reason.UNANSWERED,
            looks=0,
        )
        for kind, ref in objects_of(task.record)
    )
    return Looked(checked=checked, read_bytes=0, by=by)


def _looked(task: Task, answer: Answer) -> Looked:
    """The answer as a look at the record that was sent; it names nothing else."""
    if answer.refused is not None:
        return untold(task, f"worker {answer.worker}: {answer.refused}", by=answer.worker)
    seen = {each.kind: each for each in answer.objects}
    if doubt := _doubt(task, answer, seen):
        return untold(task, f"worker {answer.worker}: its answer {doubt}", by=answer.worker)
    blank = untold(task, "", by=answer.worker)
    checked = tuple(
        replace(each, outcome=said.outcome, reason=said.reason, looks=said.looks)
        for each in blank.checked
        for said in [seen[each.kind]]
    )
    return replace(blank, checked=checked, read_bytes=answer.read_bytes, no_answer=answer.no_answer)


def _doubt(task: Task, answer: Answer, seen: dict[ObjectKind, Seen]) -> str | None:
    """Why it cannot be of this task."""
    if len(answer.objects) != len(seen) or seen.keys() != {kind for kind, _ in objects_of(task.record)}:
        return "is not of the segment's objects, each once"
    least = sum(
        ref.size_bytes
        for kind, ref in objects_of(task.record)
        if ref is not None and isinstance(seen[kind].outcome, Verified)
    )
    if task.depth is ScrubDepth.DEEP and answer.read_bytes < least:
        return f"verifies {least} bytes, and {answer.read_bytes} were read"
    return None
