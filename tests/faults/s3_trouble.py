"""The way to S3 with everything that can happen on it: refused, hung up on, cut, answered and not heard.

A FaultyProxy that can besides be away as a whole: no connection is taken, and those that are open break.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tests.tiering.store.proxy import Fault, FaultyProxy, _Head, _Reader

# A hang holds up whoever asked until the trouble is over, so it comes less often than the others.
FAULTS = (Fault.CUT, Fault.LOSE_ANSWER, Fault.SLOW_DOWN, Fault.GARBLE)
HANGS_SHARE = 0.1


class S3Trouble(FaultyProxy):
    """In front of a bucket for as long as it is entered."""

    def __init__(self, endpoint_url: str, *, chance: random.Random) -> None:
        super().__init__(endpoint_url)
        self._chance = chance
        self._share = 0.0
        self.asked = 0
        self._address = self._listener.getsockname()
        self._away = threading.Event()

    def __enter__(self) -> S3Trouble:
        super().__enter__()
        return self

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Nobody is at the address inside."""
        self._away.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        try:
            yield
        finally:
            self._away.clear()
            self._listener = socket.create_server(self._address)
            threading.Thread(target=self._accept, daemon=True).start()

    @contextmanager
    def breaking(self, share: float) -> Iterator[None]:
        """So large a share of the requests breaks inside; afterwards whoever hangs is let go."""
        self._share = share
        try:
            yield
        finally:
            self._share = 0.0
            hanging, self._hanging = self._hanging, threading.Event()
            hanging.set()

    def summary(self) -> str:
        """What came of all requests."""
        broken = Counter(each.name for each in self.broken)
        parts = [f"{count} {name}" for name, count in sorted(broken.items())]
        return f"{self.asked} requests to S3, of which broken: {', '.join(parts) or 'none'}"

    def _fault_for(self, head: _Head) -> Fault | None:
        with self._lock:
            self.asked += 1
            if self._chance.random() >= self._share:
                return None
            fault = Fault.HANG if self._chance.random() < HANGS_SHARE else self._chance.choice(FAULTS)
            self.broken.append(fault)
            return fault

    def _serve_one(self, client: socket.socket, reader: _Reader) -> None:
        if self._away.is_set():
            raise EOFError
        super()._serve_one(client, reader)
