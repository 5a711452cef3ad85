"""The answers of a real broker (Kafka 4.3.1, one node), byte for byte, and answers that are none."""

from __future__ import annotations

import pytest

from tests.encode.message import encode_message
from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.quorum import QuorumMark
from tiering.cluster.quorum.client import addresses, mark_of
from tiering.cluster.quorum.messages import (
    DescribeQuorumResponse,
    QuorumPartition,
    QuorumTopic,
    ReplicaState,
    describe_quorum_body,
    read_answer,
    read_api_versions,
    request,
)
from tiering.log.errors import LogFormatError
from tiering.log.schema import read_message

# Recorded: the frame behind its length. Correlation ids 3, 4 and 5.
VECTORS = {
    0: (
        "0000000300000002135f5f636c75737465725f6d65746164617461020000000000000000000100000001"
        "000000000000000f0200000001000000000000000f0001000000"
    ),
    1: (
        "0000000400000002135f5f636c75737465725f6d65746164617461020000000000000000000100000001"
        "000000000000000f0200000001000000000000000f000001a1efb88e10000001a1efb88e100001000000"
    ),
    2: (
        "000000050000000102135f5f636c75737465725f6d657461646174610200000000000001000000010000"
        "0001000000000000000f020000000100000000000000000000000000000000000000000000000f000001"
        "a1efb88e12000001a1efb88e12000100000200000001020b434f4e54524f4c4c45520a3132372e302e302e"
        "318f5d000000"
    ),
}


def read_describe_quorum(frame: bytes, version: int, correlation_id: int) -> DescribeQuorumResponse:
    position = read_answer(frame, correlation_id, is_flexible=True)
    return read_message(DescribeQuorumResponse, version, frame, position)


@pytest.mark.parametrize("version", VECTORS)
def test_a_brokers_answer_is_read_to_its_last_byte(version: int) -> None:
    """Each version: the leader, its epoch, the high watermark, and how far each voter is."""
    answer = read_describe_quorum(bytes.fromhex(VECTORS[version]), version, version + 3)

    assert mark_of(answer) == QuorumMark(leader_id=1, leader_epoch=1, high_watermark=15)
    [voter] = answer.topics[0].partitions[0].current_voters
    assert (voter.replica_id, voter.log_end_offset) == (1, 15)
    assert [each.node_id for each in answer.nodes] == ([1] if version == 2 else [])


@pytest.mark.parametrize("version", VECTORS)
def test_an_answer_cut_short_or_to_another_question_is_an_error(version: int) -> None:
    """At every byte; and an answer that comes late is not taken for the one waited for."""
    whole = bytes.fromhex(VECTORS[version])
    for size in range(len(whole)):
        with pytest.raises(LogFormatError):
            read_describe_quorum(whole[:size], version, version + 3)
    with pytest.raises(LogFormatError):
        read_describe_quorum(whole, version, 77)


def test_the_request_is_what_kafkas_own_definition_says() -> None:
    """Key 55, header 2 with its tags, one topic, one partition, as KIP-595 and KIP-482 lay them out."""
    assert request(55, 1, 9, describe_quorum_body(), is_flexible=True).hex() == (
        "00000035" "0037" "0001" "00000009" "000e" + b"seawall-quorum".hex() + "00"
        "02" "13" + b"__cluster_metadata".hex() + "02" "00000000" "00" "00" "00"
    )  # fmt: skip


def test_offered_versions_are_read_as_the_broker_listed_them() -> None:
    """The beginning of a real answer to ApiVersions, two of its entries."""
    frame = bytes.fromhex("00000006" "0000" "00000002" "0000" "0000" "000d" "0037" "0000" "0002")  # fmt: skip

    assert read_api_versions(frame, 6) == (0, {0: range(14), 55: range(3)})


def answer_of(*, error: int = 0, partition_error: int = 0, high_watermark: int = 5) -> DescribeQuorumResponse:
    voter = ReplicaState(replica_id=1, log_end_offset=9)
    partition = QuorumPartition(
        partition_index=0,
        error_code=partition_error,
        leader_id=1,
        leader_epoch=3,
        high_watermark=high_watermark,
        current_voters=(voter,),
        observers=(),
    )
    topics = (QuorumTopic(topic_name="__cluster_metadata", partitions=(partition,)),)
    answer = DescribeQuorumResponse(error_code=error, topics=() if error else topics)
    frame = (8).to_bytes(4, "big") + b"\0" + encode_message(answer, 2)
    return read_describe_quorum(frame, 2, 8)


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (answer_of(error=31), Cause.REFUSED),
        (answer_of(partition_error=6), Cause.STALE),
        (answer_of(high_watermark=-1), Cause.NOT_READY),
        (answer_of(error=-1), Cause.ERROR),
    ],
)
def test_an_answer_without_a_watermark_is_unknown(answer: DescribeQuorumResponse, cause: Cause) -> None:
    """Not allowed, no leader, or a leader that does not know it yet: never a number."""
    found = mark_of(answer)

    assert isinstance(found, Unknown)
    assert found.cause is cause


def test_addresses_are_those_of_bootstrap_servers() -> None:
    """With and without port, protocol and brackets."""
    text = "a:1, b ,SSL://c:3,[::1]:4,[::2]"

    assert list(addresses(text)) == [("a", 1), ("b", 9092), ("c", 3), ("::1", 4), ("::2", 9092)]
