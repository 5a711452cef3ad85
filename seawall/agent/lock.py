"""One agent per state folder: a lock that the kernel lets go of when the process ends, however it ends.

    agent.lock    locked while an agent runs; names its process and its broker

Owns the lock and the check that the folder belongs to this broker. Two agents beside one broker lose no data
(the claim's order in the metadata topic decides, T6), but each would take the other's copies for leftovers.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seawall.agent.errors import AlreadyRunning, ForeignState
from tiering.cluster.interface import BrokerIdentity

LOCK_NAME = "agent.lock"


@contextmanager
def locked(folder: Path, broker: BrokerIdentity) -> Iterator[None]:
    """Hold the folder. Raises AlreadyRunning, ForeignState."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        said = _read(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise AlreadyRunning(folder=folder, pid=str(said.get("pid", "unknown"))) from None
        mine = {"cluster_id": broker.cluster_id, "broker_id": broker.broker_id}
        theirs = {name: said.get(name) for name in mine}
        if said and theirs != mine:
            raise ForeignState(folder=folder, found=_named(theirs), expected=_named(mine))
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": os.getpid(), **mine}).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> dict[str, object]:
    """What the last holder wrote; nothing where there was none, or it died while writing."""
    try:
        said = json.loads(os.pread(descriptor, 4096, 0) or b"{}")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _named(identity: dict[str, object]) -> str:
    return f"broker {identity['broker_id']} of cluster {identity['cluster_id']}"
