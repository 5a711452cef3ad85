"""A client of one's own: any request in any version, over a plain socket, one at a time."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Any

from tiering.serve.protocol.apis import APIS
from tiering.serve.protocol.frames import LENGTH, read_answer, request_frame

ANSWER_S = 30.0


class HungUp(Exception):
    """The other side ended the connection."""


class WireClient:
    """One connection."""

    def __init__(self, address: str, *, timeout_s: float = ANSWER_S) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=timeout_s)
        self._asked = 0

    def ask(self, key: int, version: int, request: Any) -> Any:
        """The answer, read to its last byte by its table."""
        self._asked += 1
        api = APIS[key]
        self.send(request_frame(api, version, self._asked, "wire", request))
        answer = self.receive()
        assert struct.unpack_from(">i", answer)[0] == self._asked
        return read_answer(api, version, answer)

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)

    def receive(self) -> bytes:
        [size] = LENGTH.unpack(self._exactly(4))
        return self._exactly(size)

    def is_hung_up(self) -> bool:
        """Whether the other side ends the connection, once it has sent what it had to send."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            return True
        return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> WireClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _exactly(self, size: int) -> bytes:
        found = bytearray()
        while len(found) < size:
            try:
                part = self.socket.recv(size - len(found))
            except ConnectionError as gone:
                raise HungUp from gone
            if not part:
                raise HungUp
            found += part
        return bytes(found)
