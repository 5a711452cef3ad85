"""Handlers that a child process can import."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import cast

from workers.consumer.outcomes import Done, Outcome, Skip
from workers.consumer.records import Record


def echo(record: Record) -> Outcome:
    """What came, by the outcome; odd values do what they say."""
    match record.value:
        case b"raise":
            raise KeyError("as told")
        case b"nothing":
            return cast(Outcome, None)
        case b"die":
            os.kill(os.getpid(), signal.SIGKILL)
        case b"exit":
            raise SystemExit(3)
        case b"slow":
            time.sleep(0.2)
    return Skip(f"{record.partition}@{record.offset} attempt {record.attempt}")


async def echo_later(record: Record) -> Outcome:
    await asyncio.sleep(0.2 if record.value == b"slow" else 0)
    return Done() if record.value == b"slow" else echo(record)


async def for_ever(_: Record) -> Outcome:
    await asyncio.Event().wait()
    return Done()
