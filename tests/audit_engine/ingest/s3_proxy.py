"""An HTTP proxy before an S3 server that can do to one request what a network does to some."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

DEADLINE_S = 120.0
HOP = frozenset({"connection", "transfer-encoding", "keep-alive", "content-length"})


class S3Proxy:
    """`freeze` and `swallow` take the next PUT whose path ends so; `forgets_conditions` drops a header."""

    def __init__(self, endpoint_url: str) -> None:
        self._behind = urlsplit(endpoint_url).netloc
        self.url = ""
        self.forgets_conditions = False
        self.frozen = threading.Event()
        self.thaw = threading.Event()
        self.swallowed = threading.Event()
        self._lock = threading.Lock()
        self._to_freeze = self._to_swallow = ""

    def freeze(self, ending: str) -> None:
        """Hold the request before the server has seen anything of it, until `thaw`."""
        self._to_freeze = ending

    def swallow(self, ending: str) -> None:
        """Let the server do it, and lose its answer."""
        self._to_swallow = ending

    def hold(self, method: str, path: str) -> None:
        if method == "PUT" and self._is_next("_to_freeze", path):
            self.frozen.set()
            assert self.thaw.wait(DEADLINE_S)

    def loses_answer(self, method: str, path: str) -> bool:
        return method == "PUT" and self._is_next("_to_swallow", path)

    def _is_next(self, which: str, path: str) -> bool:
        with self._lock:
            ending = getattr(self, which)
            is_it = bool(ending) and path.partition("?")[0].endswith(ending)
            if is_it:
                setattr(self, which, "")
            return is_it

    def forward(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = HTTPConnection(self._behind, timeout=DEADLINE_S)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


@contextmanager
def proxy_before(endpoint_url: str) -> Iterator[S3Proxy]:
    proxy = S3Proxy(endpoint_url)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy))
    server.daemon_threads = True
    proxy.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.thaw.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(proxy: S3Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            dropped = {"expect", *(["if-none-match"] if proxy.forgets_conditions else [])}
            headers = {name: value for name, value in self.headers.items() if name.lower() not in dropped}
            proxy.hold(self.command, self.path)
            status, answered, content = proxy.forward(self.command, self.path, headers, body)
            if proxy.loses_answer(self.command, self.path):
                proxy.swallowed.set()
                self.close_connection = True
                return
            self.send_response_only(status)
            for name, value in answered:
                if name.lower() not in HOP:
                    self.send_header(name, value)
            is_head = self.command == "HEAD"
            length_said = dict(answered).get("Content-Length", "0") if is_head else str(len(content))
            self.send_header("Content-Length", length_said)
            self.end_headers()
            if not is_head:
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815  # http.server's names

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    return Handler


def in_thread(work: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """Start it; what it raises ends up in the list."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as failed:  # noqa: BLE001  # it is the test that looks at it
            raised.append(failed)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, raised
