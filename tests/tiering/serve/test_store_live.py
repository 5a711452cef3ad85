"""A real S3 client before a store that hangs for half a minute, refuses, and cuts its answers short."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import pytest
from confluent_kafka import Consumer, TopicPartition

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.serve.run import PATIENCE
from tests.cluster.produce import Writer, create_topic, texts
from tests.faults.clean import assert_clean
from tests.tiering.reader.live import PREFIX, tier_partition
from tests.tiering.serve.live import served
from tests.tiering.serve.test_clients import consumer, polled
from tests.tiering.store.proxy import Fault, FaultyProxy, _Head, _Reader
from tiering.store.patient import PatientStore, patient
from tiering.store.s3 import S3Store, S3StoreSettings

TOPIC = "served-in-trouble"
RECORDS = 1500
HANG_S = 30.0


class ReadTrouble(FaultyProxy):
    """Whatever is read through it, as long as one of these is set."""

    hangs = False
    refuses = False
    cuts_every = 0  # so many-th answer comes without its end
    cut = 0

    def __init__(self, endpoint_url: str) -> None:
        super().__init__(endpoint_url)
        self._counted = itertools.count(1)
        self._mine = threading.local()

    def let_go(self) -> None:
        """Break the connections of those that hang; nobody else is made to."""
        self.hangs = False
        hanging, self._hanging = self._hanging, threading.Event()
        hanging.set()

    def _fault_for(self, head: _Head) -> Fault | None:
        if self.hangs:
            return Fault.HANG
        return Fault.SLOW_DOWN if self.refuses else None

    def _pass_on(self, head: _Head, reader: _Reader, fault: Fault | None) -> bytes:
        answer = super()._pass_on(head, reader, fault)
        if self.cuts_every and next(self._counted) % self.cuts_every == 0 and len(answer) > 2000:
            self.cut += 1
            self._mine.is_cut = True
            return answer[:-1000]
        return answer

    def _serve_one(self, client: socket.socket, reader: _Reader) -> None:
        super()._serve_one(client, reader)
        if getattr(self._mine, "is_cut", False):
            raise EOFError  # and the connection ends with it

    def __enter__(self) -> ReadTrouble:
        super().__enter__()
        return self


def store_behind(bucket: LocalBucket, trouble: ReadTrouble) -> PatientStore:
    at = bucket.address
    session = boto3.Session(aws_access_key_id=at.access_key_id, aws_secret_access_key=at.secret_access_key)
    settings = S3StoreSettings(
        bucket=at.bucket,
        endpoint_url=trouble.endpoint_url,
        region=at.region,
        addressing_style="path",
        read_timeout_s=5.0,
    )
    return patient(S3Store(settings, session), policy=PATIENCE)


@contextmanager
def assigned(bootstrap: str, offset: int) -> Iterator[Consumer]:
    client = consumer(bootstrap)
    client.assign([TopicPartition(TOPIC, 0, offset)])
    yield client
    client.close()


@pytest.mark.long
def test_history_waits_and_the_live_end_goes_on(broker: LocalCluster, bucket: LocalBucket) -> None:
    """No cache at all: every byte comes through the trouble, and each record comes once."""
    create_topic(broker, TOPIC)
    writer = Writer(broker, TOPIC, "trouble")
    writer.send_all(texts(RECORDS))
    tier_partition(broker, bucket, TOPIC)
    config = {"bootstrap.servers": broker.bootstrap}
    with (
        ReadTrouble(bucket.address.endpoint_url) as trouble,
        served(config, store_behind(bucket, trouble)) as endpoint,
    ):

        def pairs() -> list[tuple[int, bytes | None]]:
            return [(each.offset, each.value) for each in writer.acknowledged]

        trouble.cuts_every = 3
        with assigned(endpoint.bootstrap, 0) as client:
            assert polled(client, lambda found: len(found) == RECORDS) == pairs()
        assert trouble.cut > 0
        trouble.cuts_every = 0

        trouble.hangs = True
        with assigned(endpoint.bootstrap, 0) as client, assigned(endpoint.bootstrap, RECORDS) as tail:
            release = threading.Timer(HANG_S, trouble.let_go)
            release.start()
            writer.send_all(texts(50, seed=1))
            assert polled(tail, lambda found: len(found) == 50) == pairs()[RECORDS:]
            assert trouble.hangs, "the live end waited for the store"
            assert client.poll(1.0) is None
            release.join()
            assert polled(client, lambda found: len(found) == RECORDS + 50) == pairs()

        trouble.refuses = True
        with assigned(endpoint.bootstrap, 0) as client:
            assert client.poll(15.0) is None
            trouble.refuses = False
            assert polled(client, lambda found: len(found) == RECORDS + 50) == pairs()
        assert endpoint.counters["out_of_range"] == 0
        assert endpoint.counters["reads_late"] + endpoint.counters["reads_failed"] > 0
        assert endpoint.counters["defects"] == 0
    assert_clean(broker, bucket, TOPIC, prefix=PREFIX)
