"""The way back from S3 with what can happen on it: answers that are cut, garbled, or another's altogether.

A FaultyProxy for answers: `spoil(mode, method=, key=)` holds until it is lifted, or for `count` answers.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from enum import Enum

from tests.tiering.store.proxy import HEAD_END, SLOW_DOWN, Fault, FaultyProxy, _Head, _Reader


class Mode(Enum):
    """What becomes of an answer."""

    ROT = "one bit of the body is another than it was"
    CUT = "the connection breaks in the middle of the body"
    SLOW_DOWN = "503, whatever was asked"
    DENIED = "403, whatever was asked"
    NOT_FOUND = "404 without a word, as from a proxy that knows no such host"
    HANG = "nothing comes"


_STATUS = {
    Mode.SLOW_DOWN: (b"503 Service Unavailable", SLOW_DOWN),
    Mode.DENIED: (b"403 Forbidden", b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"),
    Mode.NOT_FOUND: (b"404 Not Found", b""),
}


class _Cut(Exception):
    """So much of the answer, and then the connection breaks."""


@dataclass(slots=True, kw_only=True)
class _Spoiled:
    mode: Mode
    method: str
    target: str
    left: int


class Trouble(FaultyProxy):
    """In front of a bucket for as long as it is entered."""

    def __init__(self, endpoint_url: str) -> None:
        super().__init__(endpoint_url)
        self._spoiled: list[_Spoiled] = []
        self.spoilt = 0

    def __enter__(self) -> Trouble:
        super().__enter__()
        return self

    def spoil(self, mode: Mode, *, method: str = "", target: str = "", count: int = 10**9) -> None:
        """From now on, of requests of this method (any, if it is empty) whose target contains `target`."""
        with self._lock:
            self._spoiled = [_Spoiled(mode=mode, method=method, target=target, left=count)]

    def _serve_one(self, client: socket.socket, reader: _Reader) -> None:
        try:
            super()._serve_one(client, reader)
        except _Cut as cut:
            client.sendall(cut.args[0])
            raise EOFError from cut

    def _pass_on(self, head: _Head, reader: _Reader, fault: Fault | None) -> bytes:
        mode = self._mode_for(head)
        if mode is Mode.HANG:
            self._hanging.wait(timeout=60)
            raise EOFError
        if mode in _STATUS:
            status, body = _STATUS[mode]
            body = b"" if head.method == "HEAD" else body
            return b"HTTP/1.1 %b\r\nContent-Length: %d%b%b" % (status, len(body), HEAD_END, body)
        answer = super()._pass_on(head, reader, fault)
        begin, mark, body = answer.partition(HEAD_END)
        if mode is Mode.ROT and body:
            at = len(body) - 20  # of a segment: in the value of its last record
            body = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        if mode is Mode.CUT and body:
            raise _Cut(begin + mark + body[: len(body) // 2])
        return begin + mark + body

    def _mode_for(self, head: _Head) -> Mode | None:
        with self._lock:
            for each in self._spoiled:
                if each.method in ("", head.method) and each.target in head.target and each.left:
                    each.left -= 1
                    self.spoilt += 1
                    return each.mode
        return None
