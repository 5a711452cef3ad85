"""The network: a POST over HTTP/1.1, with Python's own client.

    no redirect is followed, no proxy used, no cookie kept
    the name is resolved once, its addresses are judged (`addresses`), one that passed is connected to
    TLS by the system's roots or the endpoint's, for the name that was set; nothing turns that off
    one deadline over all of it: the name, connection, handshake, sending, headers, body
    of an answer's body the first BODY_BYTES are read, and what we keep secret is taken out

Owns the sockets. Raises nothing for what a receiver does.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from audit_engine.alerts.addresses import allowed
from audit_engine.alerts.endpoints import Endpoint
from audit_engine.alerts.transport import Answer, NoAnswer, Request

BODY_BYTES = 4096
SHOWN_CHARS = 200
CONNECT_S = 10.0
PORTS = {"http": 80, "https": 443}

Resolve = Callable[[str, int], Sequence[str]]


def resolved(host: str, port: int) -> list[str]:
    """All addresses of a name, each once."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


class HttpTransport:
    """For any thread. Raises OSError where an endpoint's file of certificates cannot be read."""

    def __init__(
        self, *, resolve: Resolve = resolved, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._resolve = resolve
        self._monotonic_s = monotonic_s

    def post(self, endpoint: Endpoint, request: Request) -> Answer | NoAnswer:
        deadline = _Deadline(self._monotonic_s() + endpoint.timeout_s, self._monotonic_s)
        url = urlsplit(request.url)
        try:
            connected = self._connected(endpoint, url, deadline)
            if isinstance(connected, NoAnswer):
                return connected
            with connected:
                return _exchanged(connected, url, request, deadline, endpoint)
        except TimeoutError:
            return NoAnswer(why=f"no answer within {endpoint.timeout_s:g} s")
        except (OSError, http.client.HTTPException) as failed:
            return NoAnswer(why=_clean(_reason(failed), endpoint))

    def _connected(
        self, endpoint: Endpoint, url: SplitResult, deadline: _Deadline
    ) -> socket.socket | NoAnswer:
        host, has_tls = url.hostname or "", url.scheme == "https"
        port = url.port or PORTS[url.scheme]
        found = self._addresses(host, port, deadline)
        open_to_us = allowed(found, is_private_allowed=endpoint.is_private_allowed, has_tls=has_tls)
        if not open_to_us:
            return NoAnswer(why=_refused(endpoint, has_tls=has_tls), is_refused_here=True)
        made = _connection(open_to_us, port, deadline)
        if not has_tls:
            return made
        context = ssl.create_default_context(cafile=endpoint.ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            made.settimeout(deadline.left_s())
            return context.wrap_socket(made, server_hostname=host)
        except BaseException:
            made.close()
            raise

    def _addresses(self, host: str, port: int, deadline: _Deadline) -> Sequence[str]:
        """Asking for a name knows no deadline: a thread asks, and is left alone if it takes too long."""
        found: list[Sequence[str] | OSError] = []

        def ask() -> None:
            try:
                found.append(self._resolve(host, port))
            except (OSError, UnicodeError) as failed:
                found.append(failed if isinstance(failed, OSError) else OSError(str(failed)))

        asking = Thread(target=ask, name="seawall-alerts-dns", daemon=True)
        asking.start()
        asking.join(deadline.left_s())
        if not found:
            raise TimeoutError
        [answer] = found
        if isinstance(answer, OSError):
            raise answer
        return answer


class _Deadline:
    def __init__(self, at_s: float, monotonic_s: Callable[[], float]) -> None:
        self._at_s = at_s
        self._monotonic_s = monotonic_s

    def left_s(self) -> float:
        left_s = self._at_s - self._monotonic_s()
        if left_s <= 0:
            raise TimeoutError
        return left_s


class _Timed:
    """A socket as http.client takes one; what it waits for, it waits for until the deadline, all told."""

    def __init__(self, wrapped: socket.socket, deadline: _Deadline) -> None:
        self._wrapped = wrapped
        self._deadline = deadline

    def sendall(self, sent: bytes) -> None:
        self._wrapped.settimeout(self._deadline.left_s())
        self._wrapped.sendall(sent)

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        return io.BufferedReader(_Reads(self._wrapped, self._deadline))

    def close(self) -> None:
        """The socket is its opener's to close."""


class _Reads(io.RawIOBase):
    def __init__(self, wrapped: socket.socket, deadline: _Deadline) -> None:
        super().__init__()
        self._wrapped = wrapped
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._wrapped.settimeout(self._deadline.left_s())
        return self._wrapped.recv_into(buffer)


def _connection(addresses: Sequence[str], port: int, deadline: _Deadline) -> socket.socket:
    """To the first that takes it. The numbers are connected to: nobody is asked for the name again."""
    last: OSError = ConnectionRefusedError("it has no address")
    for address in addresses:
        try:
            return socket.create_connection((address, port), timeout=min(CONNECT_S, deadline.left_s()))
        except OSError as failed:
            last = failed
    raise last


def _exchanged(
    connected: socket.socket, url: SplitResult, request: Request, deadline: _Deadline, endpoint: Endpoint
) -> Answer:
    timed = _Timed(connected, deadline)
    connection = http.client.HTTPConnection(url.hostname or "", url.port or PORTS[url.scheme])
    connection.sock = cast(socket.socket, timed)
    connection.auto_open = 0  # what was closed under us is not opened again, by its name
    target = f"{url.path or '/'}?{url.query}" if url.query else url.path or "/"
    host = url.netloc.rpartition("@")[2]
    headers = {"Host": host, "Connection": "close", **request.headers}
    connection.request("POST", target, request.body, headers)
    response = connection.getresponse()
    body = response.read(BODY_BYTES) if response.status >= 300 else b""
    return Answer(
        status=response.status,
        retry_after=response.getheader("Retry-After"),
        body=_clean(body.decode(errors="replace"), endpoint),
    )


def _refused(endpoint: Endpoint, *, has_tls: bool) -> str:
    if not has_tls:
        return "it is reached without TLS, which is for private addresses alone"
    return "its name leads to a private address, which this endpoint does not allow"


def _reason(failed: Exception) -> str:
    if isinstance(failed, ssl.SSLCertVerificationError):
        return f"its certificate is not to be trusted: {failed.verify_message}"
    if isinstance(failed, OSError):
        return failed.strerror or str(failed) or type(failed).__name__
    return f"it answered what is not HTTP ({type(failed).__name__})"


def _clean(text: str, endpoint: Endpoint) -> str:
    """As it may be shown and kept: short, one line, without what we keep secret."""
    for secret in endpoint.secrets:
        text = text.replace(secret, "***")
    return re.sub(r"[^\x20-\x7e]+", " ", text).strip()[:SHOWN_CHARS]
