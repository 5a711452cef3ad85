"""The agent's HTTP endpoint: /healthz, /readyz, /metrics. Read-only, and nothing secret in it.

Owns the server and its thread. Each answer is made from values that are at hand: no request asks a broker or
a bucket, so that a probe is answered while those are away.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from seawall.agent.errors import AddressTaken
from seawall.agent.health import Health

REQUEST_TIMEOUT_S = 10.0
POLL_S = 0.1  # so soon a stop is heard


class HttpEndpoint:
    """Serves until it is closed."""

    def __init__(self, listen: str, *, health: Health, registry: CollectorRegistry) -> None:
        host, _, port = listen.rpartition(":")
        try:
            self._server = ThreadingHTTPServer((host.strip("[]"), int(port)), _handler(health, registry))
        except OSError as refused:
            raise AddressTaken(address=listen, why=refused.strerror or str(refused)) from refused
        self._server.daemon_threads = True
        self._thread = Thread(
            target=self._server.serve_forever, args=(POLL_S,), name="seawall-http", daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _handler(health: Health, registry: CollectorRegistry) -> type[BaseHTTPRequestHandler]:
    def healthz() -> tuple[int, str, bytes]:
        return _judged(health.stuck())

    def readyz() -> tuple[int, str, bytes]:
        return _judged(health.doubts())

    def metrics() -> tuple[int, str, bytes]:
        return 200, CONTENT_TYPE_LATEST, generate_latest(registry)

    pages: dict[str, Callable[[], tuple[int, str, bytes]]] = {
        "/healthz": healthz,
        "/readyz": readyz,
        "/metrics": metrics,
    }

    class Handler(BaseHTTPRequestHandler):
        timeout = REQUEST_TIMEOUT_S

        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            if page is None:
                self._answer(404, "text/plain", ("there are " + ", ".join(pages) + "\n").encode())
            else:
                self._answer(*page())

        def log_message(self, *_: Any) -> None:
            """Probes come every few seconds: they are not news."""

        def _answer(self, status: int, content_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _judged(doubts: dict[str, str]) -> tuple[int, str, bytes]:
    body = json.dumps({"ok": not doubts, "doubts": doubts}).encode() + b"\n"
    return (503 if doubts else 200), "application/json", body
