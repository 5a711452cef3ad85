"""The embedded S3 server, as a program: `python -m seawall.local.moto_server PORT`.

moto's S3 behind a check of every stated checksum (see checked_body.py). It holds everything in memory and
authenticates nobody, so it listens on 127.0.0.1 only. SIGUSR1 makes it refuse connections while it keeps what
it holds, SIGUSR2 makes it listen again, SIGTERM ends it.
"""

from __future__ import annotations

import io
import signal
import sys
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING
from wsgiref.headers import Headers

from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import BaseWSGIServer, make_server

from seawall.local.checked_body import CHECKSUM_PREFIX, DIGESTS, MalformedBody, wrong_checksum
from seawall.local.ports import LOOPBACK

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

STOP_LISTENING = signal.SIGUSR1
LISTEN_AGAIN = signal.SIGUSR2
ALGORITHM_FIELD = "HTTP_X_AMZ_SDK_CHECKSUM_ALGORITHM"
_REFUSAL = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
)


class ChecksumGate:
    """Answers 400 BadDigest where S3 would, and passes every other request on."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        try:
            # Completing a multipart upload states the checksum of the object, not of its own XML.
            wrong = None if _completes_upload(environ) else wrong_checksum(headers, body)
        except MalformedBody as malformed:
            return _refuse(start_response, "IncompleteBody", str(malformed))
        if wrong is not None:
            return _refuse(start_response, "BadDigest", f"The {wrong} you specified did not match the body.")
        # S3 keeps a checksum that is merely stated; moto only one whose algorithm is named besides.
        for name in headers:
            if name.startswith(CHECKSUM_PREFIX) and name in DIGESTS:
                environ.setdefault(ALGORITHM_FIELD, name.removeprefix(CHECKSUM_PREFIX).upper())
        return self._application(environ, start_response)


def _completes_upload(environ: WSGIEnvironment) -> bool:
    return environ["REQUEST_METHOD"] == "POST" and "uploadId=" in environ.get("QUERY_STRING", "")


def _refuse(start_response: StartResponse, code: str, message: str) -> list[bytes]:
    body = _REFUSAL.format(code=code, message=message).encode()
    headers = Headers([("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    start_response("400 Bad Request", headers.items())
    return [body]


class Listener:
    """The listening half of the server: it can go and come back over the same application."""

    def __init__(self, port: int, application: WSGIApplication) -> None:
        self._port = port
        self._application = application
        self._server: BaseWSGIServer | None = None

    def open(self) -> None:
        if self._server is None:
            self._server = make_server(LOOPBACK, self._port, self._application, threaded=True)
            threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def main(arguments: list[str]) -> None:
    wanted = {signal.SIGTERM, STOP_LISTENING, LISTEN_AGAIN}
    # Blocked before any thread exists, so that they wait for sigwait and reach nobody else.
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    listener = Listener(int(arguments[0]), ChecksumGate(create_backend_app("s3")))
    listener.open()
    while (received := signal.sigwait(wanted)) != signal.SIGTERM:
        listener.close() if received == STOP_LISTENING else listener.open()
    listener.close()


if __name__ == "__main__":
    main(sys.argv[1:])
