"""The request for another order of replicas, and what an answer comes to."""

from __future__ import annotations

import pytest

from seawall.local.ports import ReservedPort
from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.reassign.client import ReplicaOrder, refusal_of
from tiering.cluster.reassign.messages import (
    AlterPartitionReassignmentsResponse,
    PartitionAnswer,
    TopicAnswer,
    reassignment_body,
)
from tiering.log.schema import read_message


def answer(*codes: int, code: int = 0, message: str | None = None) -> AlterPartitionReassignmentsResponse:
    partitions = tuple(
        PartitionAnswer(partition_index=number, error_code=each, error_message=message)
        for number, each in enumerate(codes)
    )
    responses = (TopicAnswer(name="orders", partitions=partitions),) if codes else ()
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=code, error_message=message, responses=responses
    )


def test_the_request_is_kafkas_to_the_byte() -> None:
    """Version 0, as Kafka's own message definition lays it out: compact lengths, tags, one partition."""
    body = reassignment_body("orders", 7, (3, 1), timeout_ms=20_000)

    assert body == bytes.fromhex(
        "00004e20"  # timeout_ms
        "02"  # one topic
        "076f7264657273"  # its name
        "02"  # one partition
        "00000007"
        "030000000300000001"  # two replicas
        "00"  # its tags
        "00"  # the topic's
        "00"  # the request's
    )
    assert reassignment_body("x" * 200, 0, (), timeout_ms=0)[5:7] == b"\xc9\x01", "a length of two bytes"


def test_the_answer_is_read_to_its_last_byte() -> None:
    """Throttle, error, and each partition's own."""
    wire = bytes.fromhex(
        "00000000"
        "0000"
        "00"  # throttle, no error, no message
        "02"
        "076f7264657273"
        "02"
        "00000007"
        "0055"
        "036e6f"
        "00"
        "00"
        "00"
    )

    found = read_message(AlterPartitionReassignmentsResponse, 0, wire)

    assert found.responses[0].partitions == (
        PartitionAnswer(partition_index=7, error_code=0x55, error_message="no"),
    )


@pytest.mark.parametrize(
    ("told", "cause"),
    [
        (answer(0), None),
        (answer(0, 39, message="no such replica"), Cause.ERROR),
        (answer(0, code=31), Cause.REFUSED),
        (answer(29), Cause.REFUSED),
        (answer(), Cause.PARTIAL),
    ],
)
def test_only_the_controllers_own_yes_is_one(
    told: AlterPartitionReassignmentsResponse, cause: Cause | None
) -> None:
    """An error of the whole or of a partition, or an answer about nothing, is none."""
    found = refusal_of(told)

    assert (None if found is None else found.cause) == cause


def test_nobody_there_is_not_known() -> None:
    """The address that refuses is named; no address at all is said."""
    with ReservedPort() as port:
        found = ReplicaOrder({"bootstrap.servers": f"127.0.0.1:{port.number}"}).put("t", 0, (1,))
    assert isinstance(found, Unknown)
    assert (found.cause, str(port.number) in found.reason) == (Cause.NO_ANSWER, True)

    none = ReplicaOrder({}).put("t", 0, (1,))
    assert none is not None
    assert none.cause is Cause.NO_ANSWER
