"""Brokers that want TLS, and SCRAM or a token: the endpoint signs in as itself, its clients need not know."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from seawall.local.bucket import LocalBucket
from tests.cluster.produce import Writer, create_topic, texts
from tests.cluster.secure import USER, SecureBroker, User
from tests.faults.clean import assert_clean
from tests.tiering.reader.live import PREFIX, store_of, tier_partition
from tests.tiering.serve.live import Served, served, start
from tests.tiering.serve.test_clients import consumer, polled
from tiering.serve.endpoint import Plan
from tiering.serve.errors import UpstreamRefuses
from tiering.serve.upstream import Address

TOPIC = "served-from-safety"
RECORDS = 500


def test_records_come_over_the_seam_from_a_broker_behind_tls_and_scram(
    secure_broker: SecureBroker, bucket: LocalBucket
) -> None:
    """SASL_SSL with SCRAM-SHA-512 towards the cluster: topics, marks, history, live end and a group; and the
    same records where it signs in with a token (OAUTHBEARER)."""
    create_topic(secure_broker, TOPIC)
    writer = Writer(secure_broker, TOPIC, "safe")
    writer.send_all(texts(RECORDS))
    tier_partition(secure_broker, bucket, TOPIC)
    with served(secure_broker.client(), store_of(bucket)) as endpoint:
        assigned = consumer(endpoint.bootstrap)
        assigned.assign([TopicPartition(TOPIC, 0, 0)])
        found = polled(assigned, lambda pairs: len(pairs) == RECORDS)
        assigned.close()
        in_group = consumer(endpoint.bootstrap, **{"group.id": "safe-group", "auto.offset.reset": "earliest"})
        in_group.subscribe([TOPIC])
        assert polled(in_group, lambda pairs: len(pairs) == RECORDS) == found
        in_group.close()
        assert found == [(each.offset, each.value) for each in writer.acknowledged]
        assert endpoint.counters["handovers"] > 0
        assert endpoint.counters["forwarded"] > 0
        assert not endpoint.troubles
        is_refused_by_name(secure_broker, endpoint)
    with served(secure_broker.by_token(), store_of(bucket)) as by_token:
        assigned = consumer(by_token.bootstrap)
        assigned.assign([TopicPartition(TOPIC, 0, 0)])
        assert polled(assigned, lambda pairs: len(pairs) == RECORDS) == found
        assigned.close()
        assert not by_token.troubles
    assert_clean(secure_broker, bucket, TOPIC, prefix=PREFIX)


def is_refused_by_name(brokers: SecureBroker, endpoint: Served) -> None:
    """A wrong password, an authority that signed nothing here, a mechanism that is not known here, a token
    that is not given, one that is for another audience."""
    for settings, why in (
        (brokers.client(User(name=USER.name, password="ebb")), "credentials"),
        (brokers.client(ca=brokers.stranger), "certificate"),
        (brokers.client() | {"sasl.mechanism": "AWS_MSK_IAM"}, "AWS_MSK_IAM"),
        (brokers.by_token(secret="ebb"), "HTTP 401"),
        (brokers.by_token(scope="elsewhere"), "credentials"),
    ):
        plan = Plan(settings=settings, listen=Address("127.0.0.1", 0))
        with pytest.raises(UpstreamRefuses, match=why):
            start(endpoint.tier, endpoint.endpoint.service.reads._reader, plan)
