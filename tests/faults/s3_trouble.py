"""The way to S3 with everything that can happen on it: refused, hung up on, cut, answered and not heard.

A FaultyProxy that can besides be away as a whole: no connection is taken, and those that are open break.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.tiering.store.proxy import Fault, FaultyProxy, _Reader

FAULTS = (Fault.CUT, Fault.LOSE_ANSWER, Fault.HANG, Fault.SLOW_DOWN, Fault.GARBLE)
METHODS = ("PUT", "PUT", "PUT", "GET", "HEAD", "DELETE", "POST")


class S3Trouble(FaultyProxy):
    """In front of a bucket for as long as it is entered."""

    def __init__(self, endpoint_url: str) -> None:
        super().__init__(endpoint_url)
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

    def recover(self) -> None:
        """No fault is due any more, and whoever hangs is let go."""
        with self._lock:
            self._due.clear()
        self._hanging.set()
        self._hanging = threading.Event()

    def _serve_one(self, client: socket.socket, reader: _Reader) -> None:
        if self._away.is_set():
            raise EOFError
        super()._serve_one(client, reader)
