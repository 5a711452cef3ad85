"""Asks about the quorum: any broker passes the question on to the quorum's leader.

The connection is kept between two questions; one that fails is closed, and the next address is tried. Needs
Describe on the cluster, nothing else.

Owns the translation of what goes wrong into `Unknown` causes. One thread at a time.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Iterator, Mapping

from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.quorum import QuorumMark
from tiering.cluster.quorum.connection import Connection
from tiering.cluster.quorum.errors import Unaskable
from tiering.cluster.quorum.messages import DescribeQuorumResponse
from tiering.log.directory import KRAFT_METADATA_TOPIC
from tiering.log.errors import LogFormatError

ANSWER_TIMEOUT_S = 5.0
ASKED_MAX = 3  # addresses for one question: nobody waits for a whole list of brokers that hang
DEFAULT_PORT = 9092
_CAUSES = {  # Kafka's error codes
    6: Cause.STALE,  # NOT_LEADER_OR_FOLLOWER
    7: Cause.NO_ANSWER,  # REQUEST_TIMED_OUT
    8: Cause.NOT_READY,  # BROKER_NOT_AVAILABLE
    29: Cause.REFUSED,  # TOPIC_AUTHORIZATION_FAILED
    31: Cause.REFUSED,  # CLUSTER_AUTHORIZATION_FAILED
    41: Cause.STALE,  # NOT_CONTROLLER
}


class QuorumClient:
    """A QuorumSource. `librdkafka` are the settings that every other client of the cluster gets."""

    def __init__(self, librdkafka: Mapping[str, str], *, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self._settings = dict(librdkafka)
        self._timeout_s = timeout_s
        self._addresses = deque(addresses(self._settings.get("bootstrap.servers", "")))
        self._connection: Connection | None = None

    def mark(self) -> QuorumMark | Unknown:
        """What the leader of the quorum says now, or why nobody told. Never raises."""
        answer = self._ask_again()
        if answer is not None:
            return mark_of(answer)
        found: QuorumMark | Unknown = Unknown(
            cause=Cause.NO_ANSWER, reason="bootstrap.servers names no broker"
        )
        for _ in range(min(ASKED_MAX, len(self._addresses))):
            found = self._ask(*self._addresses[0])
            if self._connection is not None:
                break
            self._addresses.rotate(-1)  # the next question, too, begins with another
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, host: str, port: int) -> QuorumMark | Unknown:
        """Over a new connection, which is kept if it served."""
        try:
            self._connection = Connection(host, port, self._settings, timeout_s=self._timeout_s)
            return mark_of(self._connection.describe_quorum())
        except (Unaskable, ssl.SSLError) as refused:  # an SSLError is an OSError, and waits for an operator
            failed = Unknown(cause=Cause.REFUSED, reason=f"{host}:{port}: {refused}")
        except (OSError, LogFormatError) as broken:
            failed = Unknown(cause=Cause.NO_ANSWER, reason=f"{host}:{port}: {broken}")
        self.close()
        return failed

    def _ask_again(self) -> DescribeQuorumResponse | None:
        """Over the connection that is open, if it still is."""
        if self._connection is None:
            return None
        try:
            return self._connection.describe_quorum()
        except (OSError, LogFormatError, Unaskable):
            self.close()
            return None


def mark_of(answer: DescribeQuorumResponse) -> QuorumMark | Unknown:
    """What an answer comes to."""
    if answer.error_code != 0:
        return _error(answer.error_code, answer.error_message)
    partitions = [
        each
        for topic in answer.topics
        if topic.topic_name == KRAFT_METADATA_TOPIC
        for each in topic.partitions
        if each.partition_index == 0
    ]
    if len(partitions) != 1:
        return Unknown(cause=Cause.PARTIAL, reason="the answer names no quorum of the metadata log")
    [found] = partitions
    if found.error_code != 0:
        return _error(found.error_code, found.error_message)
    if found.high_watermark < 0:
        return Unknown(cause=Cause.NOT_READY, reason="the quorum's new leader knows no high watermark yet")
    return QuorumMark(
        leader_id=found.leader_id, leader_epoch=found.leader_epoch, high_watermark=found.high_watermark
    )


def _error(code: int, message: str | None) -> Unknown:
    reason = f"DescribeQuorum: {message or f'error {code}'}"
    if code in (29, 31):
        reason += " (it takes Describe on the cluster)"
    return Unknown(cause=_CAUSES.get(code, Cause.ERROR), reason=reason)


def addresses(bootstrap: str) -> Iterator[tuple[str, int]]:
    """Hosts and ports of a `bootstrap.servers`; IPv6 addresses stand in brackets."""
    for entry in bootstrap.split(","):
        address = entry.strip().rpartition("://")[2]
        if not address:
            continue
        host, colon, port = address.rpartition(":")
        if not colon or "]" in port:
            host, port = address, str(DEFAULT_PORT)
        if port.isdecimal():
            yield host.strip("[]"), int(port)
