"""Handlers in processes of their own, each holding threads or an event loop.

A process that dies takes its records with it, so that is a failure of the machinery: the whole is restarted.
One that outlives its deadline is killed. A child whose parent died ends by itself: its pipe is at its end.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from workers.consumer.executors.eventloop import EventLoop
from workers.consumer.executors.threads import Threads
from workers.consumer.outcomes import AsyncHandler, Handler, Result
from workers.consumer.ports import Executor, ExecutorBroken
from workers.consumer.records import Record
from workers.consumer.work import Work

CHILD_POLL_S = 0.5
KILL_GRACE_S = 1.0


def in_process(handler: Handler | AsyncHandler, *, at_once: int) -> Executor:
    """An event loop for a coroutine function, threads for any other."""
    if inspect.iscoroutinefunction(handler):
        return EventLoop(handler, tasks=at_once)
    return Threads(cast(Handler, handler), threads=at_once)


class Processes:
    """`processes` children with `at_once` handlers each. The handler must be importable by name."""

    def __init__(self, handler: Handler | AsyncHandler, *, processes: int, at_once: int = 1) -> None:
        # Forked, a child would inherit the client's threads' locks in whatever state they are.
        context = multiprocessing.get_context("spawn")
        self._children = [_Child(context, handler, at_once, number) for number in range(processes)]
        self.capacity = processes * at_once * 3

    def submit(self, works: Sequence[Work]) -> None:
        shares: dict[_Child, list[Work]] = {}
        for work in works:
            child = min(self._children, key=lambda each: each.load)
            child.load += 1
            shares.setdefault(child, []).append(work)
        for child, share in shares.items():
            child.send(share)

    def collect(self, timeout_s: float) -> Sequence[tuple[Work, Result]]:
        found: list[tuple[Work, Result]] = []
        by_pipe = {child.pipe: child for child in self._children}
        for ready in wait(list(by_pipe), timeout_s):
            found += by_pipe[cast("Connection[Any, Any]", ready)].receive()
        return found

    def close(self, *, deadline_s: float) -> int:
        end_s = time.monotonic() + deadline_s
        for child in self._children:
            child.release()
        for child in self._children:
            child.end(max(end_s - time.monotonic(), 0.0))
        return 0


class _Child:
    def __init__(self, context: Any, handler: Handler | AsyncHandler, at_once: int, number: int) -> None:
        self.load = 0
        self._sent: dict[int, Work] = {}
        self.pipe, theirs = context.Pipe()
        name = f"handlers-{number}"
        self._process = context.Process(target=serve, args=(theirs, handler, at_once), name=name, daemon=True)
        self._process.start()
        theirs.close()

    def send(self, works: Sequence[Work]) -> None:
        self._sent.update((work.number, work) for work in works)
        message = pickle.dumps([(work.number, work.record) for work in works], pickle.HIGHEST_PROTOCOL)
        try:
            self.pipe.send_bytes(message)
        except OSError as end:
            raise self._broken() from end

    def receive(self) -> list[tuple[Work, Result]]:
        try:
            answers: list[tuple[int, Result]] = pickle.loads(self.pipe.recv_bytes())
        except (EOFError, OSError) as end:
            raise self._broken() from end
        self.load -= len(answers)
        return [(self._sent.pop(number), result) for number, result in answers]

    def release(self) -> None:
        try:
            self.pipe.send_bytes(b"")
        except OSError:
            return  # it is dead already

    def end(self, deadline_s: float) -> None:
        self._process.join(deadline_s)
        if self._process.is_alive():
            self._process.kill()
            self._process.join(KILL_GRACE_S)
        self.pipe.close()

    def _broken(self) -> ExecutorBroken:
        self._process.join(KILL_GRACE_S)
        return ExecutorBroken(
            f"{self._process.name} ended with {self._process.exitcode}, and {len(self._sent)} records with it"
        )


def serve(pipe: Connection[Any, Any], handler: Handler | AsyncHandler, at_once: int) -> None:
    """The child: one thread brings work in, this one brings results out."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; it ends this one in order
    inner = in_process(handler, at_once=at_once)
    ending = threading.Event()
    threading.Thread(target=_bring_in, args=(pipe, inner, ending), daemon=True).start()
    held = 0
    try:
        while not ending.is_set():
            if results := inner.collect(CHILD_POLL_S):
                held += len(results)
                answers = [(work.number, result) for work, result in results]
                pipe.send_bytes(pickle.dumps(answers, pickle.HIGHEST_PROTOCOL))
    except BaseException:  # noqa: BLE001 whatever it was, the parent sees the exit code
        os._exit(1)
    # Nobody asks for what still runs: the parent let go of it, and its offsets stay where they are.
    os._exit(0)


def _bring_in(pipe: Connection[Any, Any], inner: Executor, ending: threading.Event) -> None:
    try:
        while message := pipe.recv_bytes():
            given: list[tuple[int, Record]] = pickle.loads(message)
            inner.submit(
                [Work(record, epoch=0, lane=None, number=number, size_bytes=0) for number, record in given]
            )
    except (EOFError, OSError):
        os._exit(0)  # the parent is gone
    inner.close(deadline_s=float(2**20))
    ending.set()
