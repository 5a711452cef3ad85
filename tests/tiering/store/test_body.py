"""Bodies on a real connection: what becomes of the connection once a body was read, or left."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import pytest

from tiering.store.patient import STREAM_PIECE_BYTES, PatientStore, patient
from tiering.store.s3 import S3Store, S3StoreSettings

CONTENT = random.Random(64).randbytes(2 * STREAM_PIECE_BYTES + 1000)  # comes in several pieces


class _Server(ThreadingHTTPServer):
    """Gives CONTENT for any request, and counts connections."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.connections = 0
        self.is_chunked = False

    def handle_error(self, *_: object) -> None:
        """A connection that is dropped is the point of a test."""


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        self.send_response(206)
        if self.server.is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(CONTENT), CONTENT)
        else:
            self.send_header("Content-Length", str(len(CONTENT)))
            body = CONTENT
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server() as found:
        thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield found
        found.shutdown()
        thread.join()


def _store(server: _Server) -> PatientStore:
    settings = S3StoreSettings(
        bucket="b", endpoint_url=f"http://127.0.0.1:{server.server_port}", region="us-east-1"
    )
    session = boto3.Session(aws_access_key_id="a", aws_secret_access_key="a")
    return patient(S3Store(settings, session))


def _streamed(store: PatientStore) -> bytes:
    return b"".join(bytes(piece) for piece in store.stream("a", "1", 0, len(CONTENT)))


def test_one_connection_serves_stream_after_stream(server: _Server) -> None:
    """Whoever streams stops at the last byte, and asks for nothing behind it: it is enough."""
    store = _store(server)

    assert [_streamed(store) == CONTENT for _ in range(3)] == [True] * 3

    assert server.connections == 1


def test_a_stream_that_is_left_takes_its_connection_along(server: _Server) -> None:
    """What it had not read must not be taken for the next answer."""
    store = _store(server)
    left = store.stream("a", "1", 0, len(CONTENT))
    assert 0 < len(next(left)) < len(CONTENT)
    del left

    assert _streamed(store) == CONTENT
    assert server.connections == 2


def test_an_answer_that_does_not_say_its_length_is_read_to_its_end(server: _Server) -> None:
    """In chunks nobody knows which piece is the last: its connection is not used again."""
    server.is_chunked = True
    store = _store(server)

    assert [_streamed(store) == CONTENT for _ in range(2)] == [True] * 2

    assert server.connections == 2
