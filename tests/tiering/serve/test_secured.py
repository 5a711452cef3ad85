"""Who may read what, on a broker that enforces its ACLs: by SASL that is passed on, and by certificates."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.node import Node
from seawall.local.ports import ReservedPort
from tests.cluster.produce import QUICK_HOUSEKEEPING, Writer, create_topic, texts
from tests.faults.clean import assert_clean
from tests.tiering.reader.live import PREFIX, store_of, tier_partition
from tests.tiering.serve.live import Served, served
from tests.tiering.serve.test_clients import consumer, polled
from tests.tiering.serve.wire import HungUp, WireClient
from tests.workers.scaler.certificates import Certificates, make_certificates
from tiering.segments.topic import TOPIC as SEGMENTS
from tiering.serve.errors import Exposed
from tiering.serve.protocol import apis
from tiering.serve.protocol.asking import MetadataRequest
from tiering.serve.server import Access, tls_context
from tiering.serve.upstream import Address

pytestmark = [pytest.mark.jvm, pytest.mark.long]  # a broker of its own

LISTENER = "SAFE"
PASSWORD = "spring-tide"
TOPIC = "guarded"
RECORDS = 600
CERTIFIED = "User:CN=seawall test client"
ANSWER_S = 30.0


class GuardedBroker(LocalCluster):
    """One broker with Kafka's own authorizer; who comes by the second listener has a name."""

    def __init__(self, folder: Path, port: ReservedPort) -> None:
        self.safe_address = port.address
        super().__init__(folder, properties=QUICK_HOUSEKEEPING)

    def _properties_of(self, node: Node) -> dict[str, str]:
        properties = super()._properties_of(node)
        users = " ".join(f'user_{name}="{PASSWORD}"' for name in ("serve", "alice", "mallory"))
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        added = f",{LISTENER}://{self.safe_address}"
        return properties | {
            "listeners": properties["listeners"] + added,
            "advertised.listeners": properties["advertised.listeners"] + added,
            "listener.security.protocol.map": (
                f"{properties['listener.security.protocol.map']},{LISTENER}:SASL_PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN",
            f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": f"{module} required {users};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    def login(self, user: str, password: str = PASSWORD) -> dict[str, str]:
        return {
            "bootstrap.servers": self.safe_address,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": password,
        }


def allow(cluster: LocalCluster, user: str, kind: ResourceType, name: str, operation: AclOperation) -> None:
    binding = AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        user,
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    admin = kafka.admin_client(cluster.bootstrap)  # dropped before the answer, it would cancel the request
    [done] = admin.create_acls([binding]).values()
    done.result(ANSWER_S)


@pytest.fixture(scope="module")
def guarded(servers_folder: Path, bucket: LocalBucket) -> Iterator[GuardedBroker]:
    """A tiered topic that alice, and whoever has the client's certificate, may read; mallory may see it."""
    with ReservedPort() as port:
        cluster = GuardedBroker(servers_folder / "guarded", port)
        with cluster:
            create_topic(cluster, TOPIC)
            Writer(cluster, TOPIC, "guarded").send_all(texts(RECORDS))
            tier_partition(cluster, bucket, TOPIC)
            topic, group = ResourceType.TOPIC, ResourceType.GROUP
            allow(cluster, "User:serve", topic, "*", AclOperation.READ)
            allow(cluster, "User:serve", topic, SEGMENTS, AclOperation.DESCRIBE_CONFIGS)
            allow(cluster, "User:serve", group, "*", AclOperation.READ)
            allow(cluster, "User:serve", ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE)
            for user, theirs in (("User:alice", "alices"), (CERTIFIED, "certified")):
                allow(cluster, user, topic, TOPIC, AclOperation.READ)
                allow(cluster, user, group, theirs, AclOperation.READ)
            allow(cluster, "User:mallory", topic, TOPIC, AclOperation.DESCRIBE)
            yield cluster
            assert_clean(cluster, bucket, TOPIC, prefix=PREFIX)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def by_sasl(guarded: GuardedBroker, bucket: LocalBucket) -> Iterator[Served]:
    with served(guarded.login("serve"), store_of(bucket), access=Access(sasl=True)) as endpoint:
        yield endpoint


@pytest.fixture(scope="module")
def by_certificate(
    guarded: GuardedBroker, bucket: LocalBucket, certificates: Certificates
) -> Iterator[Served]:
    tls = tls_context(str(certificates.server_cert), str(certificates.server_key), str(certificates.ca))
    with served(
        guarded.login("serve"),
        store_of(bucket),
        listen=Address("localhost", 0),
        access=Access(tls=tls, asks_certificates=True),
    ) as endpoint:
        yield endpoint


def read_in_group(settings: dict[str, str], endpoint: Served, group: str) -> int:
    client = consumer(
        endpoint.bootstrap,
        **{
            **settings,
            "bootstrap.servers": endpoint.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
        },
    )
    client.subscribe([TOPIC])
    found = polled(client, lambda pairs: len(pairs) == RECORDS)
    client.commit(asynchronous=False)
    client.close()
    return len(found)


def is_told(settings: dict[str, Any], endpoint: Served, code: int) -> bool:
    """Whether a client that names its partition is told this, and is given no record before."""
    told: list[KafkaError] = []
    client = consumer(
        endpoint.bootstrap,
        **{**settings, "bootstrap.servers": endpoint.bootstrap, "error_cb": told.append},
    )
    client.assign([TopicPartition(TOPIC, 0, 0)])
    for _ in range(120):
        message = client.poll(0.5)
        error = message.error() if message is not None else None
        assert message is None or error is not None, "it was given a record"
        told += [error] if error is not None else []
        if code in [each.code() for each in told]:
            client.close()
            return True
    return False


def test_a_client_reads_as_itself(by_sasl: Served, guarded: GuardedBroker) -> None:
    """Its own credentials reach the broker: topics, records over the seam, and the group are its own."""
    assert read_in_group(guarded.login("alice"), by_sasl, "alices") == RECORDS
    assert by_sasl.counters["tier_fetches"] > 0
    assert by_sasl.counters["handovers"] > 0


def test_a_client_without_read_is_denied_what_is_in_the_bucket(
    by_sasl: Served, guarded: GuardedBroker
) -> None:
    """As by a broker, though no broker is asked for those records."""
    before = by_sasl.counters["tier_bytes"]
    assert is_told(guarded.login("mallory"), by_sasl, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    assert by_sasl.counters["tier_bytes"] == before


def test_wrong_credentials_are_refused_by_the_cluster(by_sasl: Served, guarded: GuardedBroker) -> None:
    assert is_told(guarded.login("alice", "ebb"), by_sasl, KafkaError._AUTHENTICATION)
    assert by_sasl.counters["sasl_failed"] > 0


def test_nothing_is_answered_before_a_client_has_signed_in(by_sasl: Served) -> None:
    with WireClient(by_sasl.bootstrap) as client, pytest.raises(HungUp):
        client.ask(apis.METADATA, 9, MetadataRequest(topics=None))


def test_a_certificate_reads_what_its_acls_let_it(by_certificate: Served, certificates: Certificates) -> None:
    """Over TLS, in a group; its principal is looked up in the cluster's ACLs."""
    assert read_in_group(with_certificate(certificates, "client"), by_certificate, "certified") == RECORDS


def test_another_certificate_is_denied(by_certificate: Served, certificates: Certificates) -> None:
    """Of the same authority, and without READ."""
    settings = with_certificate(certificates, "server")
    assert is_told(settings, by_certificate, KafkaError.TOPIC_AUTHORIZATION_FAILED)


def test_without_a_certificate_nobody_comes_in(by_certificate: Served, certificates: Certificates) -> None:
    """The handshake ends, or, as TLS 1.3 has it, the first read."""
    context = ssl.create_default_context(cafile=str(certificates.ca))
    host, _, port = by_certificate.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=ANSWER_S) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="localhost") as wrapped:
                said = wrapped.recv(1)
        except (ssl.SSLError, ConnectionError):
            said = b""
        assert said == b""


def with_certificate(certificates: Certificates, who: str) -> dict[str, str]:
    cert = certificates.client_cert if who == "client" else certificates.server_cert
    key = certificates.client_key if who == "client" else certificates.server_key
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(certificates.ca),
        "ssl.certificate.location": str(cert),
        "ssl.key.location": str(key),
    }


def test_it_does_not_listen_to_others_where_nothing_tells_who_reads(
    guarded: GuardedBroker, bucket: LocalBucket
) -> None:
    with (
        pytest.raises(Exposed),
        served(guarded.login("serve"), store_of(bucket), listen=Address("0.0.0.0", 0)),
    ):
        pass
