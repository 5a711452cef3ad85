"""A connection to one broker over which questions are asked, and answered in their order.

Owns a socket and its framing. Every step keeps the timeout.

Refuses answers longer than ANSWER_BYTES_MAX. Raises OSError where the network fails, LogFormatError where the
answer is none, Unaskable where the settings or the broker's word stand in the way; the connection is to be
closed then.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Generic, Protocol, TypeVar

from tiering.cluster.quorum import messages
from tiering.cluster.quorum.errors import Unaskable
from tiering.cluster.quorum.security import dialogue_of, mechanism_of, tls_of
from tiering.log.errors import Malformed
from tiering.log.schema import read_message

ANSWER_BYTES_MAX = 16 * 1024 * 1024  # some 50 bytes for each node of a cluster


class Answer(Protocol):
    """A table of an answer: which request it is to, and the versions of it that are read here."""

    api_key: ClassVar[int]
    versions: ClassVar[range]


A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent(Generic[A]):
    """A question whose answer has not been read yet."""

    table: type[A]
    version: int
    number: int


class Connection:
    """Opened, authenticated and ready when it is made."""

    def __init__(self, host: str, port: int, settings: Mapping[str, str], *, timeout_s: float) -> None:
        tls, mechanism = tls_of(settings), mechanism_of(settings)
        self._asked = 0
        self._socket = socket.create_connection((host, port), timeout=timeout_s)
        try:
            if tls is not None:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
            if mechanism is not None:
                self._authenticate(settings, mechanism)
            self._versions = self._ask_versions()
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def describe_quorum(self) -> messages.DescribeQuorumResponse:
        """What the quorum's leader answers, by way of this broker."""
        return self.ask(messages.DescribeQuorumResponse, messages.describe_quorum_body(), "DescribeQuorum")

    def ask(self, table: type[A], body: bytes, name: str) -> A:
        """The answer in the newest version that both know. The body is the same in all of them."""
        return self.answer(self.send(table, body, name))

    def send(self, table: type[A], body: bytes, name: str) -> Sent[A]:
        """Ask, and do not wait: a broker answers the questions of a connection in their order."""
        offered = self._versions.get(table.api_key, range(0))
        both = [each for each in table.versions if each in offered]
        if not both:
            raise Unaskable(f"the broker takes {name} in no version that is known here")
        self._send(table.api_key, both[-1], body, is_flexible=True)
        return Sent(table=table, version=both[-1], number=self._asked)

    def answer(self, sent: Sent[A]) -> A:
        """The answer to the oldest question that has none yet, which must be this one."""
        frame = self._receive()
        # Its answer's header has no tagged fields in any version, so that anybody can read it (KIP-511).
        has_tags = sent.table.api_key != messages.API_VERSIONS
        position = messages.read_answer(frame, sent.number, is_flexible=has_tags)
        return read_message(sent.table, sent.version, frame, position)

    def _ask_versions(self) -> Mapping[int, range]:
        frame = self._ask(messages.API_VERSIONS, 0, b"")
        error, found = messages.read_api_versions(frame, self._asked)
        if error != 0:
            raise Unaskable(f"the broker answers error {error} to ApiVersions")
        return found

    def _authenticate(self, settings: Mapping[str, str], mechanism: str) -> None:
        frame = self._ask(messages.SASL_HANDSHAKE, 1, messages.string(mechanism))
        error, offered = messages.read_sasl_handshake(frame, self._asked)
        if error != 0:
            raise Unaskable(f"the broker takes {', '.join(offered) or 'no SASL'}, not {mechanism}")
        dialogue = dialogue_of(settings, mechanism)
        saying = next(dialogue)
        while True:
            frame = self._ask(messages.SASL_AUTHENTICATE, 0, messages.sized(saying))
            error, why, said = messages.read_sasl_authenticate(frame, self._asked)
            if error != 0:
                raise Unaskable(f"the broker refuses the credentials: {why or f'error {error}'}")
            try:
                saying = dialogue.send(said)
            except StopIteration:
                return

    def _ask(self, api_key: int, version: int, body: bytes, *, is_flexible: bool = False) -> bytes:
        self._send(api_key, version, body, is_flexible=is_flexible)
        return self._receive()

    def _send(self, api_key: int, version: int, body: bytes, *, is_flexible: bool) -> None:
        self._asked += 1
        self._socket.sendall(messages.request(api_key, version, self._asked, body, is_flexible=is_flexible))

    def _receive(self) -> bytes:
        [size] = struct.unpack(">i", self._read(4))
        if not 4 <= size <= ANSWER_BYTES_MAX:
            raise Malformed(position=0, what="answer", why=f"claims {size} bytes")
        return self._read(size)

    def _read(self, size_bytes: int) -> bytes:
        content = bytearray()
        while len(content) < size_bytes:
            part = self._socket.recv(size_bytes - len(content))
            if not part:
                raise ConnectionResetError("the broker ended the connection")
            content += part
        return bytes(content)
