"""The client against a server that answers as a broker does, or not at all."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.tiering.cluster.quorum.test_messages import VECTORS
from tiering.cluster.image import ClusterImage
from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.quorum import QuorumMark
from tiering.cluster.quorum.client import QuorumClient
from tiering.cluster.quorum.errors import Unaskable
from tiering.cluster.quorum.security import _scram, mechanism_of, tls_of
from tiering.cluster.quorum.watermark import NOTHING_KNOWN, committed_below

MARK = QuorumMark(leader_id=1, leader_epoch=1, high_watermark=15)
TIMEOUT_S = 5.0
Answer = Callable[[int, int, bytes], bytes | None]  # key, version, body; None: hang up


class Server:
    """Listens on a free port of 127.0.0.1; one connection at a time."""

    def __init__(self, answer: Answer, tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.tls = tls
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            with client, suppress(OSError):
                self._talk(client if self.tls is None else self.tls.wrap_socket(client, server_side=True))

    def _talk(self, client: socket.socket) -> None:
        stream = client.makefile("rb")
        while head := stream.read(4):
            content = stream.read(struct.unpack(">i", head)[0])
            key, version, correlation = struct.unpack_from(">hhi", content)
            name_bytes = struct.unpack_from(">h", content, 8)[0]
            body = self.answer(key, version, content[10 + name_bytes :])
            if body is None:
                return
            frame = struct.pack(">i", correlation) + body
            client.sendall(struct.pack(">i", len(frame)) + frame)

    def close(self) -> None:
        if self._listening.fileno() >= 0:
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
        self._thread.join(TIMEOUT_S)


def versions(*entries: tuple[int, int, int]) -> bytes:
    return struct.pack(">hi", 0, len(entries)) + b"".join(struct.pack(">hhh", *each) for each in entries)


def as_broker(key: int, version: int, _: bytes) -> bytes | None:
    if key == 18:
        return versions((55, 0, 2))
    return bytes.fromhex(VECTORS[version])[4:]


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(answer: Answer, tls: ssl.SSLContext | None = None) -> Server:
        servers.append(Server(answer, tls))
        return servers[-1]

    yield start
    for each in servers:
        each.close()


def client_of(*servers: Server, **settings: str) -> QuorumClient:
    addresses = ",".join(each.address for each in servers)
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return QuorumClient({"bootstrap.servers": addresses, **named}, timeout_s=TIMEOUT_S)


def test_one_connection_serves_many_questions(serve: Callable[[Answer], Server]) -> None:
    """It is opened once, and anew only when it has ended."""
    server = serve(as_broker)
    client = client_of(server)

    assert [client.mark() for _ in range(3)] == [MARK] * 3
    assert server.connections == 1
    client.close()
    assert client.mark() == MARK
    assert server.connections == 2
    client.close()


def test_a_broker_that_fails_is_passed_over(serve: Callable[[Answer], Server]) -> None:
    """Hanging up, or talking another protocol: the next address is asked."""
    dead = serve(lambda *_: None)
    odd = serve(lambda *_: b"HTTP/1.1 400 Bad Request")
    client = client_of(dead, odd, serve(as_broker))

    assert client.mark() == MARK
    client.close()


def test_nobody_to_ask_is_unknown(serve: Callable[[Answer], Server]) -> None:
    """No address, nobody listening, no such request: each says which."""
    gone = serve(as_broker)
    gone.close()
    old = serve(lambda *_: versions((18, 0, 3)))

    for client, cause, word in (
        (QuorumClient({}), Cause.NO_ANSWER, "names no broker"),
        (client_of(gone), Cause.NO_ANSWER, gone.address),
        (client_of(old), Cause.REFUSED, "DescribeQuorum"),
    ):
        found = client.mark()
        assert isinstance(found, Unknown)
        assert found.cause is cause
        assert word in found.reason
        client.close()


def test_what_the_settings_want_and_cannot_be_had_is_refused(serve: Callable[[Answer], Server]) -> None:
    """Never by a weaker way: another mechanism, a key store, an authority that is not there."""
    server = serve(as_broker)
    for settings, word in (
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "AWS_MSK_IAM"}, "AWS_MSK_IAM"),
        ({"security_protocol": "sasl_plaintext"}, "GSSAPI"),
        ({"security_protocol": "SSL", "ssl_keystore_location": "x.p12"}, "ssl.keystore.location"),
        ({"security_protocol": "SSL", "ssl_ca_location": "/nowhere.pem"}, "certificates"),
        ({"security_protocol": "TLS13"}, "TLS13"),
    ):
        found = client_of(server, **settings).mark()
        assert isinstance(found, Unknown)
        assert found.cause is Cause.REFUSED
        assert word in found.reason
    assert server.connections == 0


def test_tls_checks_the_broker_unless_told_not_to() -> None:
    """The name and the chain by default; each can be turned off by librdkafka's own setting."""
    strict = tls_of({"security.protocol": "ssl"})
    nameless = tls_of({"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": "none"})
    trusting = tls_of({"security.protocol": "sasl_ssl", "enable.ssl.certificate.verification": "false"})

    assert strict is not None
    assert nameless is not None
    assert trusting is not None
    assert (strict.check_hostname, strict.verify_mode.name) == (True, "CERT_REQUIRED")
    assert (nameless.check_hostname, nameless.verify_mode.name) == (False, "CERT_REQUIRED")
    assert (trusting.check_hostname, trusting.verify_mode.name) == (False, "CERT_NONE")
    assert tls_of({}) is None
    assert mechanism_of({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}) == "PLAIN"


def test_tls_is_spoken_and_a_stranger_is_refused(
    serve: Callable[..., Server], tmp_path: Path, other_tmp: Path
) -> None:
    """With the authority that signed the broker's certificate it answers; with another one it is REFUSED."""
    authority, certificate, key = certificates(tmp_path)
    stranger, _, _ = certificates(other_tmp)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = serve(as_broker, context)

    trusting = client_of(server, security_protocol="SSL", ssl_ca_location=str(authority))
    assert trusting.mark() == MARK
    trusting.close()
    pem = client_of(server, security_protocol="SSL", ssl_ca_pem=authority.read_text())
    assert pem.mark() == MARK
    pem.close()
    refused = client_of(server, security_protocol="SSL", ssl_ca_location=str(stranger)).mark()
    assert isinstance(refused, Unknown)
    assert refused.cause is Cause.REFUSED


def test_no_question_waits_for_a_whole_list_of_brokers(serve: Callable[[Answer], Server]) -> None:
    """A few are tried for each, and the next one goes on behind them."""
    dead = [serve(lambda *_: None) for _ in range(4)]
    client = client_of(*dead, serve(as_broker))

    assert isinstance(client.mark(), Unknown)
    assert [each.connections for each in dead] == [1, 1, 1, 0]
    assert client.mark() == MARK
    client.close()


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """An authority, and what it signed for 127.0.0.1 with its key."""
    now = datetime.now(timezone.utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    key = ec.generate_private_key(ec.SECP256R1())
    here = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(here, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "authority.pem", folder / "certificate.pem", folder / "key.pem"
    for path in paths[:2]:
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[2].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


@pytest.fixture
def other_tmp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("other")


# RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_scram_is_that_of_the_rfc() -> None:
    """Its own example, word for word; it ends when the server has proved itself."""
    talk = _scram("user", "pencil", "sha256", NONCE)

    assert next(talk) == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert talk.send(SERVER_FIRST) == CLIENT_FINAL
    with pytest.raises(StopIteration):
        talk.send(SERVER_FINAL)


@pytest.mark.parametrize(
    ("first", "final"),
    [
        (SERVER_FIRST.replace(b"r=rOpr", b"r=xOpr"), b""),
        (SERVER_FIRST.replace(b"i=4096", b"i=1"), b""),
        (SERVER_FIRST.replace(b"i=4096", b"i=99999999"), b""),
        (b"e=unknown-user", b""),
        (SERVER_FIRST, b"v=AAAA"),
        (SERVER_FIRST, b"e=invalid-proof"),
    ],
)
def test_a_scram_server_that_does_not_prove_itself_is_not_believed(first: bytes, final: bytes) -> None:
    """Another nonce, too little or too much work, no proof: refused."""
    talk = _scram("user", "pencil", "sha256", NONCE)
    next(talk)

    def hear_both() -> None:
        talk.send(first)
        talk.send(final)

    with pytest.raises(Unaskable):
        hear_both()


def test_a_watermark_counts_for_a_log_that_was_read_to_its_epoch() -> None:
    """A copy that ends in an older epoch may differ below it; nothing is known then."""
    unknown = Unknown(cause=Cause.NO_ANSWER, reason="nobody answers")

    assert committed_below(MARK, ClusterImage(end_offset=20, epoch=1)) == 15
    assert committed_below(MARK, ClusterImage(end_offset=20, epoch=2)) == 15
    assert committed_below(MARK, ClusterImage(end_offset=20, epoch=0)) == NOTHING_KNOWN
    assert committed_below(unknown, ClusterImage(end_offset=20, epoch=1)) == NOTHING_KNOWN
