"""Asks the controller for another order of a partition's replicas, by way of any broker.

Needs Alter on the cluster.

Owns the translation of what goes wrong into `Unknown` causes. Never raises. Invariant: None is the
controller's own word that it took the order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.quorum.client import ASKED_MAX, addresses
from tiering.cluster.quorum.connection import Connection
from tiering.cluster.quorum.errors import Unaskable
from tiering.cluster.reassign.messages import AlterPartitionReassignmentsResponse, reassignment_body
from tiering.log.errors import LogFormatError

ANSWER_TIMEOUT_S = 20.0
_UNAUTHORISED = frozenset({29, 31})  # TOPIC_, CLUSTER_AUTHORIZATION_FAILED


class ReplicaOrder:
    """`librdkafka` are the settings that every other client of the cluster gets."""

    def __init__(self, librdkafka: Mapping[str, str], *, timeout_s: float = ANSWER_TIMEOUT_S) -> None:
        self._settings = dict(librdkafka)
        self._timeout_s = timeout_s

    def put(self, topic: str, partition: int, replicas: Sequence[int]) -> Unknown | None:
        """Why it is not known to be so; None once the controller has taken it."""
        found = Unknown(cause=Cause.NO_ANSWER, reason="bootstrap.servers names no broker")
        for host, port in list(addresses(self._settings.get("bootstrap.servers", "")))[:ASKED_MAX]:
            try:
                with Connection(host, port, self._settings, timeout_s=self._timeout_s) as connection:
                    body = reassignment_body(
                        topic, partition, replicas, timeout_ms=round(self._timeout_s * 1000)
                    )
                    answer = connection.ask(
                        AlterPartitionReassignmentsResponse, body, "AlterPartitionReassignments"
                    )
                    return refusal_of(answer)
            except Unaskable as refused:
                found = Unknown(cause=Cause.REFUSED, reason=f"{host}:{port}: {refused}")
            except (OSError, LogFormatError) as failed:
                found = Unknown(cause=Cause.NO_ANSWER, reason=f"{host}:{port}: {failed}")
        return found


def refusal_of(answer: AlterPartitionReassignmentsResponse) -> Unknown | None:
    """What an answer comes to."""
    told = [(answer.error_code, answer.error_message)]
    told += [(each.error_code, each.error_message) for one in answer.responses for each in one.partitions]
    for code, message in told:
        if code in _UNAUTHORISED:
            return Unknown(cause=Cause.REFUSED, reason="it takes Alter on the cluster")
        if code != 0:
            return Unknown(cause=Cause.ERROR, reason=message or f"error {code}")
    if not any(one.partitions for one in answer.responses):
        return Unknown(cause=Cause.PARTIAL, reason="the answer names no partition")
    return None
