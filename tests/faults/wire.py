"""The wire between an agent and its broker, to be cut.

The broker names its address to the clients of one listener, so that a proxy before it would be passed by.

`WiredBroker` has two listeners. The plain one is for the test, which sees and changes what it likes while the
wire is cut; the other is advertised at the wire's own end, so that no client that came by the wire ever finds
a way around it, whichever connection it opens.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from seawall.local.broker import LocalCluster
from seawall.local.node import Node
from seawall.local.ports import LOOPBACK, ReservedPort
from tests.cluster.produce import QUICK_HOUSEKEEPING

LISTENER = "WIRE"
CONNECT_S = 5.0
PART_BYTES = 64 * 1024


class Cut(Enum):
    """What becomes of connections, old and new ones, while the wire is cut."""

    REFUSED = "they break, and nobody takes new ones: the host answers, and the port is closed"
    SILENT = "they stay open and carry nothing, new ones too: packets are lost on the way"


class Wire:
    """Carries connections from `address` to another one; ended by `close`."""

    def __init__(self, upstream: tuple[str, int]) -> None:
        self._upstream = upstream
        self._port = ReservedPort()
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()  # of the next one
        self._open: set[socket.socket] = set()
        self.taken = 0  # connections, so far
        self._listener = self._listen()

    @property
    def address(self) -> str:
        return self._port.address

    @contextmanager
    def cut(self, how: Cut) -> Iterator[None]:
        """Inside, nothing comes through."""
        if how is Cut.SILENT:
            self._flows.clear()
            try:
                yield
            finally:
                self._flows.set()
            return
        self._hang_up()
        try:
            yield
        finally:
            self._listener = self._listen()

    def close(self) -> None:
        self._flows.set()
        self._hang_up()
        self._port.release()

    def _listen(self) -> socket.socket:
        listener = socket.create_server((LOOPBACK, self._port.number))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _hang_up(self) -> None:
        _close(self._listener)
        with self._lock:
            broken, self._open = self._open, set()
        for each in broken:
            _close(each)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                self.taken += 1
                threading.Thread(target=self._carry, args=(listener, client), daemon=True).start()

    def _carry(self, listener: socket.socket, client: socket.socket) -> None:
        self._flows.wait()
        try:
            broker = socket.create_connection(self._upstream, timeout=CONNECT_S)
        except OSError:
            _close(client)
            return
        broker.settimeout(None)
        with self._lock:
            is_cut = listener.fileno() < 0  # cut between the two ends
            if not is_cut:
                self._open |= {client, broker}
        if is_cut:
            _close(client)
            _close(broker)
            return
        threading.Thread(target=self._pump, args=(client, broker), daemon=True).start()
        self._pump(broker, client)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while part := source.recv(PART_BYTES):
                self._flows.wait()
                target.sendall(part)
        for each in (source, target):
            with self._lock:
                self._open.discard(each)
            _close(each)


class WiredBroker(LocalCluster):
    """One broker; `wired_bootstrap` is the way that the wire carries, and the only one that is told there."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, properties=QUICK_HOUSEKEEPING)
        self._far_end = ReservedPort()
        self.wire = Wire((LOOPBACK, self._far_end.number))

    @property
    def wired_bootstrap(self) -> str:
        return self.wire.address

    def close(self) -> None:
        super().close()
        self.wire.close()
        self._far_end.release()

    def _properties_of(self, node: Node) -> dict[str, str]:
        properties = super()._properties_of(node)
        protocols = properties["listener.security.protocol.map"]
        return properties | {
            "listeners": f"{properties['listeners']},{LISTENER}://{self._far_end.address}",
            "advertised.listeners": f"{properties['advertised.listeners']},{LISTENER}://{self.wire.address}",
            "listener.security.protocol.map": f"{protocols},{LISTENER}:PLAINTEXT",
        }


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
