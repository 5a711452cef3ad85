"""A worker's handler: a record of the topic of tasks in, an answer out, and an outcome for the consumer.

| what happens | answer | outcome |
|---|---|---|
| it was looked at, whatever it came to | its objects | Done |
| the store did not answer, STORE_RETRIES times at most | none yet | Retry |
| the store does not answer after that, either | its objects: unclear | Done |
| nobody waits for it any more, or the worker has another bucket | refused | Skip |
| it cannot be read | refused, where a header and the key say of what | DeadLetter |
| looking raises what nobody foresaw, DEFECT_TRIES times | refused | DeadLetter |
| the topic of answers does not take the answer | kept, and sent again | Retry |
| the worker ends | none: another one gets the task | Retry |

`say` returns when the answer is durable, so that no offset is committed before.

Owns this table. Refuses to do anything to a bucket but look, and to look twice for want of a broker.
"""

from __future__ import annotations

from collections.abc import Callable

from tiering.scrub.look import Looked, Looker, Objects
from tiering.scrub.pace import GivenUp
from tiering.scrub.shared.words import HEADER, Answer, Seen, Task, decode_task
from tiering.segments.errors import SegmentMetadataError
from tiering.segments.records import SegmentId
from tiering.store.throttle import Clock, InTurn, Sleep, Throttle
from tiering.store.throttle import Pace as Limit
from workers.consumer.outcomes import DeadLetter, Done, Outcome, Retry, Skip
from workers.consumer.records import Record

STORE_RETRIES = 2
STORE_RETRY_S = 10.0
DEFECT_TRIES = 3
SAY_AGAIN_S = 5.0
UNSAID_MAX = 10_000

Key = tuple[str, SegmentId]


class Unsaid(Exception):
    """The topic of answers did not take one, or did not say so in time."""


class Looking:
    """Looks at what tasks name. For any number of threads."""

    def __init__(
        self,
        objects: Objects,
        *,
        bucket: str,
        worker: str,
        say: Callable[[Answer], None],
        limit: Limit,
        clock: Clock,
        sleep: Sleep,
        now_ms: Callable[[], int],
        is_ending: Callable[[], bool],
        store_retry_s: float = STORE_RETRY_S,
        tell: Callable[[str, Task], None] = lambda *_: None,
    ) -> None:
        self._objects, self._bucket, self._worker, self._say = objects, bucket, worker, say
        self._limit, self._clock, self._sleep, self._now_ms = limit, clock, sleep, now_ms
        self._is_ending, self._store_retry_s, self._tell = is_ending, store_retry_s, tell
        self._unsaid: dict[Key, Answer] = {}

    def __call__(self, record: Record) -> Outcome:
        try:
            task = decode_task(record.value or b"", f"the task at {record.partition}, {record.offset}")
        except SegmentMetadataError as unreadable:
            return self._unread(record, str(unreadable).splitlines()[0])
        key = task.run, task.record.segment_id
        kept = self._unsaid.get(key)
        if kept is not None:
            return self._said(key, kept, Done())
        if why := self._reason_against(task):
            return self._said(key, self._refusal(*key, why), Skip(why))
        self._tell("scrub_look_begun", task)
        try:
            looked = self._looked(task)
        except GivenUp:
            if self._is_ending():
                return Retry(SAY_AGAIN_S)
            why = "the time that the coordinator waits was up while it was read"
            return self._said(key, self._refusal(*key, why), Skip(why))
        except Exception as defect:  # a worker's edge: whoever waits for the answer hears of it
            if record.attempt + 1 < DEFECT_TRIES:
                raise
            why = f"looking at it failed: {type(defect).__name__}: {defect}"
            return self._said(key, self._refusal(*key, why), DeadLetter(why))
        if looked.no_answer and record.attempt < STORE_RETRIES:
            return Retry(self._store_retry_s)
        self._tell("scrub_look_ended", task)
        return self._said(key, self._answer(task, looked), Done())

    def _reason_against(self, task: Task) -> str | None:
        if task.bucket != self._bucket:
            return f"it is set to bucket {self._bucket}, and the scrub to {task.bucket}"
        late_ms = self._now_ms() - task.until_ms
        return f"by its clock the task came {late_ms / 1000:.0f} s too late" if late_ms >= 0 else None

    def _looked(self, task: Task) -> Looked:
        # Without a burst: each share is the rate's, also of many small segments.
        share = Throttle(bytes_per_s=task.bytes_per_s, burst_bytes=0, clock=self._clock, sleep=self._sleep)
        limits = InTurn(self._limit, share)

        def pace(size_bytes: int) -> None:
            if self._is_ending() or self._now_ms() >= task.until_ms:
                raise GivenUp
            limits.take(size_bytes)

        stem, live = task.record.key_stem, task.live
        looker = Looker(self._objects, pace)
        return looker.look(task.record, task.depth, {f"{stem}.{each.value}" for each in live}.__contains__)

    def _answer(self, task: Task, looked: Looked) -> Answer:
        return Answer(
            run=task.run,
            segment_id=task.record.segment_id,
            worker=self._worker,
            read_bytes=looked.read_bytes,
            no_answer=looked.no_answer,
            objects=tuple(
                Seen(kind=each.kind, outcome=each.outcome, reason=each.reason, looks=each.looks)
                for each in looked.checked
            ),
        )

    def _refusal(self, run: str, segment_id: SegmentId, why: str) -> Answer:
        return Answer(run=run, segment_id=segment_id, worker=self._worker, refused=why)

    def _unread(self, record: Record, why: str) -> Outcome:
        run = dict(record.headers).get(HEADER)
        if run is None or record.key is None:
            return DeadLetter(why)
        key = run.decode(errors="replace"), SegmentId(record.key.decode(errors="replace"))
        return self._said(key, self._refusal(*key, f"the task is a dead letter: {why}"), DeadLetter(why))

    def _said(self, key: Key, answer: Answer, outcome: Outcome) -> Outcome:
        """The outcome, once the answer is durable; until then the task is not done."""
        try:
            self._say(answer)
        except Unsaid:
            if len(self._unsaid) < UNSAID_MAX:
                self._unsaid[key] = answer
            return Retry(SAY_AGAIN_S)
        self._unsaid.pop(key, None)
        return outcome
