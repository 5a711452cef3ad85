"""A balancer of TCP connections, as before several instances: each goes to the next one that answers."""

from __future__ import annotations

import itertools
import socket
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType

CONNECT_S = 5.0
PART_BYTES = 64 * 1024


class Balancer:
    """Listens at `port`. `carried`: bytes of answers, by backend; `latest`: whose came last."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.carried: Counter[str] = Counter()
        self.latest = ""
        self._backends: Sequence[str] = ()
        self._turns = itertools.count()
        self._open: list[socket.socket] = []

    def __enter__(self) -> Balancer:
        return self

    def start(self, backends: Sequence[str]) -> None:
        """Take clients from now on."""
        self._backends = backends
        threading.Thread(target=self._accept, name="balancer", daemon=True).start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in [self._listening, *self._open]:
            _close(each)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._carry, args=(client,), daemon=True).start()

    def _carry(self, client: socket.socket) -> None:
        """To the backend whose turn it is, or the next that is there; if none is, hang up."""
        first = next(self._turns)
        for number in range(len(self._backends)):
            address = self._backends[(first + number) % len(self._backends)]
            host, _, port = address.rpartition(":")
            with suppress(OSError):
                backend = socket.create_connection((host, int(port)), timeout=CONNECT_S)
                backend.settimeout(None)
                self._open += [client, backend]
                threading.Thread(target=self._pump, args=(client, backend, ""), daemon=True).start()
                self._pump(backend, client, address)
                return
        _close(client)

    def _pump(self, source: socket.socket, target: socket.socket, backend: str) -> None:
        with suppress(OSError):
            while part := source.recv(PART_BYTES):
                if backend:
                    self.carried[backend] += len(part)
                    self.latest = backend
                target.sendall(part)
        _close(source)
        _close(target)


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
