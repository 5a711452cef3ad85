"""A real TCP server between a client and an S3 server, which breaks what passes through it.

Each request is read, passed on over a connection of its own, and its answer passed back, unless a fault is
due: `break_next(fault, method=..., query=...)` breaks the next requests that match, each once. What the
server did before the fault stays done: that is the point of LOSE_ANSWER.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

LINE_END = b"\r\n"
HEAD_END = b"\r\n\r\n"
CHUNK_BYTES = 256 * 1024
CUT_AFTER_BYTES = 100_000
SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?>'
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)


class Fault(Enum):
    """What becomes of a request."""

    CUT = "the connection breaks in the middle of the body; the server never gets the whole"
    LOSE_ANSWER = "the server does what it was asked for, and the connection breaks before its answer"
    HANG = "nothing is read after the head, and nothing is answered"
    SLOW_DOWN = "503 SlowDown, and the server gets nothing"
    GARBLE = "one bit of the body turns over on the way"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Due:
    fault: Fault
    method: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    method: str
    target: str
    lines: tuple[bytes, ...]
    body_bytes: int


class FaultyProxy:
    """Listens on 127.0.0.1 in front of `endpoint_url` for as long as it is entered."""

    def __init__(self, endpoint_url: str) -> None:
        upstream = urlsplit(endpoint_url)
        assert upstream.hostname is not None
        assert upstream.port is not None
        self._upstream = (upstream.hostname, upstream.port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.endpoint_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._lock = threading.Lock()
        self._due: list[_Due] = []
        self._hanging = threading.Event()  # set when those that hang shall end
        self.broken: list[Fault] = []

    def break_next(self, fault: Fault, *, method: str, query: str = "", count: int = 1) -> None:
        """Break the next `count` requests of this method whose target contains `query`."""
        with self._lock:
            self._due += [_Due(fault=fault, method=method, query=query)] * count

    def __enter__(self) -> FaultyProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Refuse connections from now on."""
        self._hanging.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # else `accept` waits for one more
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError, EOFError):
            reader = _Reader(client)
            while True:
                self._serve_one(client, reader)

    def _serve_one(self, client: socket.socket, reader: _Reader) -> None:
        head = _read_head(reader)
        fault = self._fault_for(head)
        if fault is Fault.HANG:
            self._hanging.wait(timeout=60)
            raise EOFError
        if any(line.lower().startswith(b"expect:") for line in head.lines):
            client.sendall(b"HTTP/1.1 100 Continue" + HEAD_END)
        if fault is Fault.SLOW_DOWN:
            for _ in reader.pieces(head.body_bytes):
                pass
            client.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: %d" % len(SLOW_DOWN))
            client.sendall(HEAD_END + SLOW_DOWN)
            return
        answer = self._pass_on(head, reader, fault)
        if fault is Fault.LOSE_ANSWER:
            raise EOFError
        client.sendall(answer)

    def _pass_on(self, head: _Head, reader: _Reader, fault: Fault | None) -> bytes:
        """The server's whole answer, head and body."""
        with socket.create_connection(self._upstream, timeout=60) as server:
            dropped = (b"expect:", b"connection:")
            kept = [line for line in head.lines if not line.lower().startswith(dropped)]
            server.sendall(LINE_END.join([*kept, b"Connection: close"]) + HEAD_END)
            passed_bytes = 0
            for piece in reader.pieces(head.body_bytes):
                if fault is Fault.CUT and passed_bytes + len(piece) > CUT_AFTER_BYTES:
                    server.sendall(piece[:1000])
                    raise EOFError
                garbled = fault is Fault.GARBLE and passed_bytes == 0
                server.sendall(bytes([piece[0] ^ 1]) + piece[1:] if garbled else piece)
                passed_bytes += len(piece)
            return b"".join(iter(lambda: server.recv(CHUNK_BYTES), b""))

    def _fault_for(self, head: _Head) -> Fault | None:
        with self._lock:
            for due in self._due:
                if due.method == head.method and due.query in head.target:
                    self._due.remove(due)
                    self.broken.append(due.fault)
                    return due.fault
        return None


class _Reader:
    """Bytes from a socket, by what they are up to or how many."""

    def __init__(self, source: socket.socket) -> None:
        self._source = source
        self._left = b""

    def until(self, mark: bytes) -> bytes:
        while mark not in self._left:
            self._left += self._more()
        found, _, self._left = self._left.partition(mark)
        return found

    def pieces(self, size_bytes: int) -> Iterator[bytes]:
        while size_bytes > 0:
            piece = (self._left or self._more())[:size_bytes]
            self._left = self._left[len(piece) :]
            size_bytes -= len(piece)
            yield piece

    def _more(self) -> bytes:
        more = self._source.recv(CHUNK_BYTES)
        if not more:
            raise EOFError
        return more


def _read_head(reader: _Reader) -> _Head:
    lines = reader.until(HEAD_END).split(LINE_END)
    method, target, _ = lines[0].decode("latin-1").split(" ", 2)
    sizes = [line.partition(b":")[2] for line in lines if line.lower().startswith(b"content-length:")]
    return _Head(method=method, target=target, lines=tuple(lines), body_bytes=int(sizes[0]) if sizes else 0)
