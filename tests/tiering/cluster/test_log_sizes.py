"""What a broker says of itself: held against its own files, and never taken for more than it said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.log_sizes import Features, LogDir, Quorum
from tiering.cluster.log_sizes.client import BrokerClient, features_of, log_dirs_of, quorum_of
from tiering.cluster.log_sizes.messages import (
    ApiVersionsResponse,
    DescribeLogDirsResponse,
    FinalizedFeature,
    LogDirPartition,
    LogDirResult,
    LogDirTopic,
    SupportedFeature,
)
from tiering.cluster.quorum.messages import DescribeQuorumResponse
from tiering.log.checkpoints import TopicPartition
from tiering.log.errors import LogFormatError
from tiering.log.schema import read_message

DEADLINE_S = 60.0


def answered(*results: LogDirResult, error_code: int = 0) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(throttle_time_ms=0, error_code=error_code, results=results)


def result(*partitions: LogDirPartition, error_code: int = 0) -> LogDirResult:
    topics = (LogDirTopic(name="orders", partitions=partitions),) if partitions else ()
    return LogDirResult(
        error_code=error_code, log_dir="/data", topics=topics, total_bytes=100, usable_bytes=40
    )


def replica(number: int, size_bytes: int, *, is_future: bool = False) -> LogDirPartition:
    return LogDirPartition(
        partition_index=number, partition_size=size_bytes, offset_lag=0, is_future_key=is_future
    )


def log_dir(answer: DescribeLogDirsResponse) -> LogDir:
    found = log_dirs_of(answer)
    assert not isinstance(found, Unknown)
    [only] = found
    return only


def test_a_replica_on_its_way_to_another_disk_is_not_counted_twice() -> None:
    """While it is moved it is in both log dirs; the future one is no replica yet."""
    found = log_dir(answered(result(replica(0, 10), replica(1, 20, is_future=True))))

    assert dict(found.size_bytes) == {TopicPartition("orders", 0): 10}
    assert (found.total_bytes, found.usable_bytes) == (100, 40)


def test_an_older_broker_tells_no_size_of_its_disk() -> None:
    """Before KIP-827 there is no such field: not known, rather than -1 bytes."""
    found = log_dir(answered(replace(result(), total_bytes=-1, usable_bytes=-1)))

    assert (found.total_bytes, found.usable_bytes) == (None, None)


@pytest.mark.parametrize(("code", "trouble"), [(56, "it is offline"), (1, "error 1")])
def test_a_log_dir_in_trouble_says_so(code: int, trouble: str) -> None:
    """An offline disk has no sizes, and is not an empty one."""
    assert log_dir(answered(result(error_code=code))).trouble == trouble


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (answered(error_code=31), Cause.REFUSED),
        (answered(), Cause.REFUSED),  # how versions below 3 refuse
        (answered(error_code=42), Cause.ERROR),
    ],
)
def test_a_refusal_is_unknown_and_no_empty_broker(answer: DescribeLogDirsResponse, cause: Cause) -> None:
    """Who may not ask is told nothing: that is never zero bytes."""
    found = log_dirs_of(answer)

    assert isinstance(found, Unknown)
    assert found.cause is cause


def test_features_are_those_of_the_metadata_alone() -> None:
    """Other features do not matter; without KRaft there is none."""
    answer = ApiVersionsResponse(
        error_code=0,
        api_keys=(),
        throttle_time_ms=0,
        supported_features=(
            SupportedFeature(name="kraft.version", min_version=0, max_version=1),
            SupportedFeature(name="metadata.version", min_version=7, max_version=30),
        ),
        finalized_features=(
            FinalizedFeature(name="metadata.version", max_version_level=25, min_version_level=25),
        ),
    )

    assert features_of(answer) == Features(newest_metadata_version=30, metadata_version=25)
    bare = replace(answer, supported_features=(), finalized_features=())
    assert features_of(bare) == Features(newest_metadata_version=None, metadata_version=None)
    assert isinstance(features_of(replace(answer, error_code=35)), Unknown)


def test_a_quorum_that_may_not_be_asked_for_is_unknown() -> None:
    """Refused, or an answer without the metadata log: nobody is named."""
    refused = quorum_of(DescribeQuorumResponse(error_code=31, topics=()))
    empty = quorum_of(DescribeQuorumResponse(error_code=0, topics=()))

    assert isinstance(refused, Unknown)
    assert refused.cause is Cause.REFUSED
    assert isinstance(empty, Unknown)


@settings(deadline=None)
@given(version=st.sampled_from([*DescribeLogDirsResponse.versions]), content=st.binary(max_size=200))
def test_no_bytes_make_an_answer_that_was_not_read_to_its_end(version: int, content: bytes) -> None:
    """Whatever comes over the wire is an answer, or a LogFormatError."""
    try:
        found = read_message(DescribeLogDirsResponse, version, content)
    except LogFormatError:
        return
    assert isinstance(found, DescribeLogDirsResponse)


def test_nobody_listening_is_no_answer() -> None:
    """A broker that is down is Unknown, for each of the questions."""
    client = BrokerClient("127.0.0.1", 1, {}, timeout_s=1.0)

    for found in (client.log_dirs(), client.features(), client.quorum()):
        assert isinstance(found, Unknown)
        assert found.cause is Cause.NO_ANSWER


def test_what_cannot_be_asked_safely_is_not_asked() -> None:
    """A SASL mechanism that this client does not have: refused, and no connection by a weaker way."""
    client = BrokerClient("127.0.0.1", 1, {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"})

    found = client.log_dirs()
    assert isinstance(found, Unknown)
    assert found.cause is Cause.REFUSED


def test_sizes_are_those_of_the_files(broker: LocalCluster) -> None:
    """Each replica is as large as its .log files on disk; the broker is its own controller, and of 4.3."""
    topic = "log-sizes"
    kafka.create_topic(broker.bootstrap, topic, partitions=2)
    kafka.produce(broker.bootstrap, topic, [b"x" * 1000] * 300)
    host, port = broker.bootstrap.split(":")
    client = BrokerClient(host, int(port), {})
    [folder] = broker.log_dirs()
    told: list[dict[TopicPartition, int]] = []

    def on_disk(number: int) -> int:
        return sum(path.stat().st_size for path in (folder / f"{topic}-{number}").glob("*.log"))

    def agree() -> bool:
        found = client.log_dirs()
        assert not isinstance(found, Unknown)
        [only] = found
        assert only.path == str(folder)
        assert only.total_bytes is not None
        told[:] = [{part: size for part, size in only.size_bytes.items() if part.topic == topic}]
        return told[0] == {TopicPartition(topic, number): on_disk(number) for number in range(2)}

    wait_until(agree, name=topic, wanted="sizes as on disk", deadline_s=DEADLINE_S)
    assert told[0][TopicPartition(topic, 0)] > 300_000
    assert client.quorum() == Quorum(leader_id=1, voter_ids=frozenset({1}))
    assert client.features() == Features(newest_metadata_version=30, metadata_version=30)
