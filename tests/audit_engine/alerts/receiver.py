"""A receiver on this machine that does what receivers do: takes, refuses, hangs, sends elsewhere, cuts off.

It does what its script says, one step a request, and then takes everything. Each request that came is kept,
taken or not.
"""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any

Step = str | tuple[int, dict[str, str]]

HANG, CUT, DRIP, GARBAGE = "hang", "cut", "drip", "garbage"
CUT_AFTER_TAKING = "cut after taking"


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """A request, and what was done with it. `is_taken`: the receiver has acted on it."""

    path: str
    headers: dict[str, str]
    body: bytes
    step: Step
    is_taken: bool

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    def __init__(self, *script: Step, context: ssl.SSLContext | None = None) -> None:
        self.came: list[Came] = []
        self._script = list(script)
        self._lock = Lock()
        self.ended = Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        if context is not None:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        scheme = "http" if context is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.port}/hooks/seawall"
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def taken(self) -> list[Came]:
        return [each for each in self.came if each.is_taken]

    def then(self, *script: Step) -> None:
        with self._lock:
            self._script += script

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def step(self, path: str, headers: dict[str, str], body: bytes) -> Step:
        """What to do with this request, which is kept."""
        with self._lock:
            step: Step = self._script.pop(0) if self._script else (200, {})
            is_taken = step == CUT_AFTER_TAKING or (isinstance(step, tuple) and step[0] < 300)
            named = {name.lower(): value for name, value in headers.items()}
            self.came.append(Came(path=path, headers=named, body=body, step=step, is_taken=is_taken))
            return step


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            step = receiver.step(self.path, dict(self.headers.items()), body)
            if isinstance(step, tuple):
                self._answer(*step)
            elif step == HANG:
                receiver.ended.wait(30)
            elif step == DRIP:
                self._drip()
            elif step == GARBAGE:
                self.wfile.write(b"\x00\x01 not http\r\n\r\n")
            self.close_connection = True

        def _answer(self, status: int, headers: dict[str, str]) -> None:
            self.send_response(status)
            body = headers.get("body", "").encode()
            for name, value in headers.items():
                if name != "body":
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _drip(self) -> None:
            """A byte of the status line now and then: no single read waits long."""
            with contextlib.suppress(OSError):
                while not receiver.ended.wait(0.05):
                    self.wfile.write(b"H")
                    self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            """Not news."""

    return Handler


@contextlib.contextmanager
def receiver(*script: Step, context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    made = Receiver(*script, context=context)
    try:
        yield made
    finally:
        made.close()
