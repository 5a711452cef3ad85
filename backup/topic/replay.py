"""Reads a range, sends it on, commits; and goes on behind the last commit, whatever ended the run before.

    begin       the writer fences whoever ran before; only then is it read how far he came
    collect     batches of committed records, until they are enough for a transaction
    say         a record of progress, with the offsets that the leader gave them
    commit      all of it at once

Owns the loop, and what is worth another attempt. Refuses to go on after what would be refused again.

Invariant: whether a transaction was committed is read from the topic of progress, never assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from backup.topic.errors import TakenOver, WriteFailed, WriteRefused
from backup.topic.offset_map import OffsetMap, Run, joined
from backup.topic.outgoing import PACKED_BYTES, Outgoing, Packer, Sender
from backup.topic.progress import PROGRESS_TOPIC, Step, map_of, progress_key, step_batch
from tiering.reader.interface import Gap, StoredBatch, TieredLog
from tiering.reader.reader import TieredReader

TRANSACTION_BYTES = 32 * 1024 * 1024
TRANSACTION_BATCHES = 4096  # and so many runs in a record of progress at most
ATTEMPTS_MAX = 10  # in a row, without a transaction committed
PAUSE_S = 0.5


class Writer(Protocol):
    """A transactional producer of batches. `writer.TransactionalWriter` is one."""

    def begin(self) -> None: ...

    def enter(self, partitions: Sequence[tuple[str, int]]) -> None: ...

    def sender(self, topic: str, partition: int) -> Sender: ...

    def send(self, topic: str, partition: int, batch: bytes | bytearray) -> int: ...

    def settle(self) -> Mapping[int, int]: ...

    def commit(self) -> None: ...


class Progress(Protocol):
    """The topic of progress, read to its end: what is committed, once nothing of the key is under way."""

    def steps(self, key: bytes) -> list[Step]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One log's range into one partition of a topic."""

    plan_hash: str
    topic: str
    topic_id: str
    partition: int
    start: int
    end: int

    @property
    def key(self) -> bytes:
        return progress_key(self.plan_hash, self.topic_id, self.partition)

    @property
    def transactional_id(self) -> str:
        return f"seawall-restore-{self.plan_hash[:32]}-{self.topic_id}-{self.partition}"


@dataclass(slots=True, kw_only=True)
class Counted:
    """What this run did; for people."""

    transactions: int = 0
    batches: int = 0
    records: int = 0
    bytes: int = 0
    made_anew: int = 0
    retried: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """A replay that came to its end, now or before."""

    map: OffsetMap
    counted: Counted


Source = Callable[[int, int], Iterator[StoredBatch | Gap]]
Told = Callable[[str], None]


def committed_batches(
    reader: TieredReader, log: TieredLog, pace: Callable[[int], object] = lambda _: None
) -> Source:
    """What of a log a consumer of committed records is given, as whole batches. `pace` waits for the byte
    rate."""

    def batches(start: int, end: int) -> Iterator[StoredBatch | Gap]:
        for item in reader.found(log, start, end, with_aborted=True):
            if isinstance(item, Gap):
                yield item
                continue
            opened, batch = item
            pace(batch.header.size_bytes)
            if not (batch.header.is_control or opened.aborted.hides(batch.header)):
                yield batch

    return batches


def replay(
    job: Job,
    source: Source,
    writer: Writer,
    progress: Progress,
    *,
    now_ms: Callable[[], int],
    pause: Callable[[float], None],
    on_progress: Callable[[int], None] = lambda _: None,
    step: Told = lambda _: None,
    transaction_bytes: int = TRANSACTION_BYTES,
    batch_bytes: int = PACKED_BYTES,
) -> Replayed:
    """Bring the range into the target. `on_progress` is told offsets; `step` each effect: tests kill."""
    counted = Counted()
    failed = 0
    reached = -1
    while True:
        try:
            step("begin")
            writer.begin()
            steps = progress.steps(job.key)
            offset = steps[-1].next_offset if steps else job.start
            failed, reached = (0, offset) if offset > reached else (failed, reached)
            if offset == job.end and steps:
                return Replayed(map=map_of(steps, job.start), counted=counted)
            packer = Packer(sender=writer.sender(job.topic, job.partition), limit_bytes=batch_bytes)
            run = _Run(job, writer, packer, counted, now_ms, on_progress, step, transaction_bytes)
            steps += run.run(source, offset)
            return Replayed(map=map_of(steps, job.start), counted=counted)
        except (TakenOver, WriteRefused):
            raise
        except WriteFailed:
            failed += 1
            counted.retried += 1
            if failed > ATTEMPTS_MAX:
                raise
            pause(PAUSE_S)


class _Sent(NamedTuple):
    """A batch on its way, without its bytes: they are the connection's."""

    number: int
    runs: tuple[Run, ...]
    records: int
    is_passed_through: bool


class _Run:
    """The transactions of one producer, one after the other."""

    def __init__(
        self,
        job: Job,
        writer: Writer,
        packer: Packer,
        counted: Counted,
        now_ms: Callable[[], int],
        on_progress: Callable[[int], None],
        step: Told,
        transaction_bytes: int,
    ) -> None:
        self._job, self._writer, self._packer, self._counted = job, writer, packer, counted
        self._now_ms, self._on_progress, self._step = now_ms, on_progress, step
        self._limit_bytes = transaction_bytes
        self._sent: list[_Sent] = []
        self._bytes = 0
        self._done: list[Step] = []

    def run(self, source: Source, offset: int) -> list[Step]:
        """From `offset` to the job's end; what each transaction did."""
        job, began = self._job, offset
        for item in source(offset, job.end) if offset < job.end else ():
            if isinstance(item, Gap):
                continue  # the plan named it
            self._send(self._packer.add(item))
            if (
                self._bytes + self._packer.bytes >= self._limit_bytes
                or len(self._sent) >= TRANSACTION_BATCHES
            ):
                self._commit(item.end)
                self._on_progress(item.end - began)
                began = item.end
        self._commit(job.end)
        self._on_progress(job.end - began)
        return self._done

    def _send(self, batches: Sequence[Outgoing]) -> None:
        at = (self._job.topic, self._job.partition)
        for batch in batches:
            if not self._sent:
                self._step("enter")
                self._writer.enter([at, (PROGRESS_TOPIC, 0)])
            self._step("send")
            number = self._writer.send(*at, batch.content)
            self._sent.append(_Sent(number, batch.runs, batch.records, batch.is_passed_through))
            self._bytes += len(batch.content)

    def _commit(self, next_offset: int) -> None:
        """Say what the transaction did, in it, and end it."""
        writer = self._writer
        self._send(self._packer.flush())
        writer.enter([(PROGRESS_TOPIC, 0)])
        self._step("settle")
        offsets = writer.settle()
        runs = joined(
            Run(run.source, offsets[batch.number] + run.target, run.offsets)
            for batch in self._sent
            for run in batch.runs
        )
        done = Step(
            next_offset=next_offset, target_end=max((run.target_end for run in runs), default=-1), runs=runs
        )
        self._step("say")
        sender = writer.sender(PROGRESS_TOPIC, 0)
        writer.send(PROGRESS_TOPIC, 0, step_batch(self._job.key, done, self._now_ms(), sender))
        writer.settle()
        self._step("commit")
        writer.commit()
        self._step("committed")
        self._done.append(done)
        self._count()

    def _count(self) -> None:
        counted = self._counted
        counted.transactions += 1
        counted.batches += len(self._sent)
        counted.records += sum(batch.records for batch in self._sent)
        counted.bytes += self._bytes
        counted.made_anew += sum(not batch.is_passed_through for batch in self._sent)
        self._sent, self._bytes = [], 0
