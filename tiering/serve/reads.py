"""The store as the event loop uses it: reads in threads, each with a deadline, and not too many of them.

A client waits for an answer only so long before it gives up the connection. So a read that takes longer
than ANSWER_S is answered by an error that the client tries again, and goes on: what it fetches is in the
cache then.

Owns the threads and what becomes of the errors: each is a Kafka code, a counter and, where the store has
other bytes than it should have, an event. Invariant: READS_MAX reads at most wait for the store, however many
clients there are; beyond, the answer is the same error at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Semaphore
from typing import TypeVar

from rules.identity import LogId
from tiering.log.batch import Record
from tiering.reader.errors import GapInRange, ObjectDamaged, ObjectError, ReadBackError
from tiering.reader.interface import TieredLog
from tiering.reader.reader import TieredReader
from tiering.serve.counters import Counters
from tiering.serve.cursors import Cursors, TierBatches
from tiering.serve.protocol.codes import Code
from tiering.store.errors import StoreError

T = TypeVar("T")

THREADS = 12
READYING_MAX = (
    2  # answers that are made ready at once, in threads of their own; the others are when asked for
)
READS_MAX = 48
ANSWER_S = 12.0  # librdkafka and Kafka's clients wait for 30 s and longer


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRead:
    """Why nothing could be had of the store, as a client is told."""

    code: Code
    why: str


class Reads:
    """For one event loop. `on_damage` is told of every object that has not the bytes that it should have."""

    def __init__(
        self,
        reader: TieredReader,
        counters: Counters,
        *,
        skip_gaps: bool,
        on_trouble: Callable[[str, Exception], None],
        answer_s: float = ANSWER_S,
    ) -> None:
        self._reader = reader
        self._counters = counters
        self._on_trouble = on_trouble
        self._answer_s = answer_s
        self.cursors = Cursors(reader, counters, skip_gaps=skip_gaps)
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="seawall-serve")
        self._running = 0
        self._readying = ThreadPoolExecutor(READYING_MAX, thread_name_prefix="seawall-ready")
        self._readying_free = Semaphore(READYING_MAX)

    async def batches(
        self, log: TieredLog, offset: int, *, max_bytes: int, committed: bool
    ) -> TierBatches | NotRead:
        found = await self._in_thread(
            lambda: self.cursors.read(log, offset, max_bytes=max_bytes, committed=committed)
        )
        if isinstance(found, TierBatches):
            self._make_ready(log.log, found.next_offset, max_bytes=max_bytes, committed=committed)
        return found

    async def record_at(self, log: TieredLog, timestamp_ms: int) -> Record | NotRead | None:
        return await self._in_thread(lambda: self._reader.record_at(log, timestamp_ms))

    def close(self) -> None:
        for pool in (self._pool, self._readying):
            pool.shutdown(wait=False, cancel_futures=True)
        self.cursors.close()

    def _make_ready(self, log: LogId, next_offset: int, *, max_bytes: int, committed: bool) -> None:
        """While the client takes this answer; not where the store holds up as many already."""
        if not self._readying_free.acquire(blocking=False):
            self._counters.count("ready_put_off")
        else:
            work = partial(
                self.cursors.make_ready, log, next_offset, max_bytes=max_bytes, committed=committed
            )
            self._readying.submit(work).add_done_callback(self._made_ready)

    def _made_ready(self, done: Future[None]) -> None:
        self._readying_free.release()
        if not done.cancelled() and isinstance(failed := done.exception(), Exception):
            self._on_trouble("defect", failed)

    async def _in_thread(self, work: Callable[[], T]) -> T | NotRead:
        if self._running >= READS_MAX:
            self._counters.count("reads_refused")
            return NotRead(code=Code.KAFKA_STORAGE_ERROR, why="too many reads wait for the store")
        self._running += 1
        coming = asyncio.get_running_loop().run_in_executor(self._pool, work)
        coming.add_done_callback(self._ended)
        try:
            return await asyncio.wait_for(asyncio.shield(coming), self._answer_s)
        except asyncio.TimeoutError:
            self._counters.count("reads_late")
            return NotRead(code=Code.KAFKA_STORAGE_ERROR, why=f"nothing came for {self._answer_s:g} s")
        except GapInRange as gap:
            self._counters.count("gaps_met")
            return self._told("gap", gap, Code.KAFKA_STORAGE_ERROR)
        except ObjectDamaged as damaged:
            self._counters.count("damaged")
            return self._told("damaged", damaged, Code.CORRUPT_MESSAGE)
        except ObjectError as missing:
            self._counters.count("missing")
            return self._told("missing", missing, Code.KAFKA_STORAGE_ERROR)
        except (ReadBackError, StoreError) as failed:
            self._counters.count("reads_failed")
            return self._told("failed", failed, Code.KAFKA_STORAGE_ERROR)

    def _ended(self, coming: asyncio.Future[T]) -> None:
        self._running -= 1
        if not coming.cancelled():
            coming.exception()  # of a read that nobody waits for any more

    def _told(self, what: str, error: Exception, code: Code) -> NotRead:
        self._on_trouble(what, error)
        return NotRead(code=code, why=str(error))
