"""A receiver of alerts on this machine, as somebody would write one: it takes what is signed with our secret.

Owns the server and its port. Refuses, with 401, what it cannot verify.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from audit_engine.alerts.signing import SECRET_PREFIX, secret_of, signed

BODY_BYTES_MAX = 1024 * 1024
SECRET_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One message, and whether its signature was right."""

    is_verified: bool
    says: Any


class AlertReceiver:
    """Listens until it is closed."""

    def __init__(self) -> None:
        self.secret = SECRET_PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode("ascii")
        self._alerts: list[Alert] = []
        self._lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/alerts"
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def take(self, headers: dict[str, str], body: bytes) -> bool:
        """Keep it; whether it is ours."""
        is_ours = _is_signed(headers, body, secret_of(self.secret))
        with self._lock:
            self._alerts.append(Alert(is_verified=is_ours, says=json.loads(body) if is_ours else None))
        return is_ours

    def alerts(self) -> list[Alert]:
        with self._lock:
            return list(self._alerts)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _is_signed(headers: dict[str, str], body: bytes, secret: bytes) -> bool:
    try:
        told = signed(headers["webhook-id"], int(headers["webhook-timestamp"]), body, [secret])
        given = headers["webhook-signature"]
    except (KeyError, ValueError):
        return False
    return hmac.compare_digest(told["webhook-signature"], given)


def _handler(receiver: AlertReceiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size_bytes = min(int(self.headers["Content-Length"]), BODY_BYTES_MAX)
            body = self.rfile.read(size_bytes)
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.send_response(200 if receiver.take(headers, body) else 401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Not news."""

    return Handler
