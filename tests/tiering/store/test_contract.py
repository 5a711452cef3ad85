"""The contract of an object store, kept by the fake of the tests, by moto, and by a real S3 server."""

from __future__ import annotations

import boto3
import pytest

from seawall.local.bucket import LocalBucket
from tests.cluster.versitygw import VersityGateway
from tests.tiering.store.contract import StoreContract
from tests.tiering.store.memory import Bucket, MemoryStore
from tiering.store.interface import ObjectStore
from tiering.store.s3 import S3Store, S3StoreSettings

pytestmark = pytest.mark.slow

UNVERSIONED = "unversioned"


class TestMemory(StoreContract):
    """The fake that other tests use in S3's place."""

    @pytest.fixture(autouse=True)
    def _bucket(self) -> None:
        self.kept = Bucket()

    def make_store(self, *, page_entries: int) -> ObjectStore:
        return MemoryStore(self.kept, page_entries=page_entries)

    def unversioned(self) -> ObjectStore:
        return MemoryStore(Bucket(versioned=False, locked=False))


class TestMoto(StoreContract):
    """The adapter, over the embedded server."""

    checks_finish = "moto takes any size and checksum at the finish of a multipart upload"
    is_atomic = "moto looks and writes in two steps"

    @pytest.fixture(autouse=True)
    def _server(self, bucket: LocalBucket) -> None:
        self.local = bucket

    def make_store(self, *, page_entries: int) -> ObjectStore:
        return self._store(self.local.name, page_entries)

    def unversioned(self) -> ObjectStore:
        client = self.local.client()
        if UNVERSIONED not in {found["Name"] for found in client.list_buckets()["Buckets"]}:
            client.create_bucket(Bucket=UNVERSIONED)
        return self._store(UNVERSIONED, 1000)

    def _store(self, name: str, page_entries: int) -> ObjectStore:
        at = self.local.address
        session = boto3.Session(
            aws_access_key_id=at.access_key_id, aws_secret_access_key=at.secret_access_key
        )
        settings = S3StoreSettings(
            bucket=name, endpoint_url=at.endpoint_url, region=at.region, page_entries=page_entries
        )
        return S3Store(settings, session)


class TestVersityGateway(StoreContract):
    """The adapter, over a real S3 server."""

    marker_is_absence = "versitygw counts a delete marker as an object, and refuses to write over it"
    pages_uploads = "versitygw refuses its own marker where a page ends between two uploads of one key"

    @pytest.fixture(autouse=True)
    def _server(self, versitygw: VersityGateway) -> None:
        self.gateway = versitygw
        self.name = versitygw.new_bucket()

    def make_store(self, *, page_entries: int) -> ObjectStore:
        return self._store(self.name, page_entries)

    def unversioned(self) -> ObjectStore:
        return self._store(self.gateway.new_bucket(versioned=False), 1000)

    def _store(self, name: str, page_entries: int) -> ObjectStore:
        settings = S3StoreSettings(
            bucket=name, endpoint_url=self.gateway.endpoint_url, page_entries=page_entries
        )
        return S3Store(settings, self.gateway.session())
