"""TCP ports on 127.0.0.1 that stay ours from the moment they are chosen until they are released.

A port found by "bind to 0, close, use the number" can be taken by anyone before the server binds it, and
again while a server is down between a kill and a restart. Here the socket stays bound, never listening,
for as long as the port is reserved. A server that sets SO_REUSEADDR (Java on Unix, Python's socketserver)
can bind and listen beside it, while the kernel gives the number to no other bind(0) and to no outgoing
connection.
"""

from __future__ import annotations

import socket
from types import TracebackType

LOOPBACK = "127.0.0.1"


class ReservedPort:
    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((LOOPBACK, 0))
        self.number: int = self._socket.getsockname()[1]

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.number}"

    def release(self) -> None:
        self._socket.close()

    def __enter__(self) -> ReservedPort:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def is_listening(number: int, *, timeout_s: float = 0.2) -> bool:
    """Whether a server accepts connections on this port of 127.0.0.1."""
    try:
        with socket.create_connection((LOOPBACK, number), timeout=timeout_s):
            return True
    except OSError:
        return False
