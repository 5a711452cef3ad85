"""What the doctor says of brokers: silent ones, wrong settings, wrong addresses, and a real one."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from seawall.doctor import kafka
from seawall.doctor.finding import Status
from seawall.local.broker import LocalCluster
from seawall.settings import KafkaSettings


@pytest.fixture
def open_port() -> Iterator[int]:
    """A port that accepts connections and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that refuses connections for as long as the test runs: bound, and nobody listens."""
    with closing(socket.socket()) as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "ANSWER_TIMEOUT_S", 1.0)


def _statuses(settings: KafkaSettings) -> list[Status]:
    return [finding.status for finding in kafka.examine(settings)]


def test_unset_bootstrap_is_skipped_and_said() -> None:
    """Not configured is no failure, and no pass either: it says what to set."""
    (finding,) = kafka.examine(KafkaSettings())

    assert finding.status is Status.SKIPPED
    assert "kafka.bootstrap" in finding.detail


def test_refused_connection_fails_with_the_reason(closed_port: int) -> None:
    """A broker that is down is told from one that is slow, and what could not be looked at is unknown."""
    answer, addresses = kafka.examine(KafkaSettings(bootstrap=f"127.0.0.1:{closed_port}"))

    assert answer.status is Status.FAIL
    assert "refused" in answer.detail
    assert addresses.status is Status.UNKNOWN


def test_silent_server_fails_within_the_deadline(open_port: int) -> None:
    """A port where something listens that is no broker does not hang the doctor."""
    assert _statuses(KafkaSettings(bootstrap=f"127.0.0.1:{open_port}")) == [Status.FAIL, Status.UNKNOWN]


def test_property_that_librdkafka_does_not_know_is_named(closed_port: int) -> None:
    """A mistake in [kafka.client] is told as such, not as a broker that does not answer."""
    settings = KafkaSettings(bootstrap=f"127.0.0.1:{closed_port}", client={"security.protocl": "SSL"})

    answer, _ = kafka.examine(settings)

    assert answer.status is Status.FAIL
    assert "security.protocl" in answer.detail


def test_advertised_address_that_refuses_is_named(open_port: int, closed_port: int) -> None:
    """Of several brokers, those that cannot be reached are listed with the address they advertise."""
    finding = kafka.advertised(
        (
            kafka.Broker(broker_id=1, host="127.0.0.1", port=open_port),
            kafka.Broker(broker_id=2, host="127.0.0.1", port=closed_port),
        )
    )

    assert finding.status is Status.FAIL
    assert finding.detail.endswith(f": 2 at 127.0.0.1:{closed_port}")


def test_brokers_that_were_not_tried_are_not_called_fine(open_port: int) -> None:
    """Beyond the limit the finding says how many were looked at."""
    count = kafka.CONNECTS_AT_MOST + 1
    brokers = tuple(kafka.Broker(broker_id=i, host="127.0.0.1", port=open_port) for i in range(count))

    finding = kafka.advertised(brokers)

    assert finding.status is Status.WARN
    assert f"{kafka.CONNECTS_AT_MOST} of {count}" in finding.detail


def test_real_broker_is_fine(broker: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that answers is named by its cluster, and its advertised address is tried."""
    monkeypatch.setattr(kafka, "ANSWER_TIMEOUT_S", 30.0)

    answer, addresses = kafka.examine(KafkaSettings(bootstrap=broker.bootstrap))

    assert (answer.status, addresses.status) == (Status.OK, Status.OK)
    assert broker.cluster_id in answer.detail
