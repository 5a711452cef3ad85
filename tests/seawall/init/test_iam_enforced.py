"""The IAM policies on a server that enforces them: what each role's code does works, and nothing beyond.

moto stands in for S3 and IAM: it maps requests to actions by itself, and knows nothing of our tables.
It leaves conditions aside: that a listing is held to its prefix is not shown here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import settings as moto_settings
from moto.core.authorization import ActionAuthenticatorMixin
from moto.server import ThreadedMotoServer

from rules.identity import ObjectRef
from seawall.init.permissions import iam
from seawall.init.permissions.roles import ROLES
from tiering.store.content import InMemory
from tiering.store.errors import Denied, Missing
from tiering.store.interface import CHECKSUM_ALGORITHM
from tiering.store.s3 import S3Store, S3StoreSettings

BUCKET, PREFIX = "tides", "seawall/cluster/"
REGION = "us-east-1"
BODY = InMemory(b"x" * 100)
Stores = Callable[[str], S3Store]


@pytest.fixture(scope="module")
def stores() -> Iterator[Stores]:
    """A store for each role, by its name, over one bucket that a stranger made."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        keys = _made(url)
        moto_settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
        yield lambda role: _store(url, *keys[role])
    finally:
        moto_settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")
        ActionAuthenticatorMixin.request_count = 0
        server.stop()


def _made(url: str) -> dict[str, tuple[str, str]]:
    """The bucket, and for each role a user with its policy: the keys by the role's name."""
    anyone: dict[str, Any] = {
        "region_name": REGION,
        "endpoint_url": url,
        "aws_access_key_id": "anyone",
        "aws_secret_access_key": "anything",
    }
    boto3.client("s3", **anyone).create_bucket(Bucket=BUCKET, ObjectLockEnabledForBucket=True)
    users = boto3.client("iam", **anyone)
    keys: dict[str, tuple[str, str]] = {}
    for role in ROLES:
        document = iam.document(role, bucket=BUCKET, prefix=PREFIX, region=REGION)
        users.create_user(UserName=role.name)
        users.put_user_policy(UserName=role.name, PolicyName="seawall", PolicyDocument=document)
        key = users.create_access_key(UserName=role.name)["AccessKey"]
        keys[role.name] = (key["AccessKeyId"], key["SecretAccessKey"])
    return keys


def _store(url: str, key_id: str, secret: str) -> S3Store:
    session = boto3.Session(aws_access_key_id=key_id, aws_secret_access_key=secret, region_name=REGION)
    return S3Store(
        S3StoreSettings(bucket=BUCKET, endpoint_url=url, region=REGION, addressing_style="path"), session
    )


def put(stores: Stores, name: str) -> tuple[str, str]:
    """A key that the agent stored, and the version."""
    key = f"{PREFIX}{name}"
    version_id = stores("agent-tier").put_new(key, BODY, BODY.checksum)
    assert version_id is not None
    return key, version_id


@pytest.mark.parametrize("role", ["agent-tier", "agent-trim"])
def test_an_agent_stores_reads_back_and_marks(stores: Stores, role: str) -> None:
    """Whole or in parts, and given up: all that a copy does, a key that is not there told as missing."""
    store, key = stores(role), f"{PREFIX}{role}"
    version_id = store.put_new(key, BODY, BODY.checksum)
    upload_id = store.start_parts(f"{key}.parts")
    part = store.put_part(f"{key}.parts", upload_id, 1, BODY, BODY.checksum)
    store.finish_parts(f"{key}.parts", upload_id, (part,), size_bytes=100, checksum=BODY.checksum)
    store.abort_parts(f"{key}.given-up", store.start_parts(f"{key}.given-up"))

    assert store.head(key).version_id == version_id
    assert store.head(key, version_id).size_bytes == 100
    with pytest.raises(Missing):
        store.head(f"{PREFIX}nothing-here")
    assert store.mark_deleted(key) is not None
    assert store.head(key, version_id).size_bytes == 100


def test_an_agent_reaches_no_other_clusters_keys_and_lists_none(stores: Stores) -> None:
    """Beside its own prefix it may not write, and it has no business in listings of versions."""
    store = stores("agent-tier")

    with pytest.raises(Denied):
        store.put_new("seawall/other/key", BODY, BODY.checksum)
    with pytest.raises(Denied):
        store.versions_page(PREFIX, None)
    with pytest.raises(Denied):
        store.uploads_page(PREFIX, None)


def test_a_reader_reads_and_lists_and_changes_nothing(stores: Stores) -> None:
    """Every look works; every act is refused."""
    key, version_id = put(stores, "read")
    store = stores("reader")

    assert b"".join(store.read_range(key, version_id, 0, 10)) == b"x" * 10
    assert key in {each.key for each in store.keys_page(PREFIX, None).entries}
    assert key in {each.key for each in store.versions_page(PREFIX, None).entries}
    store.uploads_page(PREFIX, None)
    assert store.keeps_versions()
    acts: list[Callable[[], object]] = [
        lambda: store.put_new(f"{PREFIX}new", BODY, BODY.checksum),
        lambda: store.start_parts(f"{PREFIX}new"),
        lambda: store.mark_deleted(key),
        lambda: store.set_hold(key, version_id, held=True),
    ]
    for act in acts:
        with pytest.raises(Denied):
            act()


def test_a_scrub_worker_looks_and_changes_nothing(stores: Stores) -> None:
    """What a look takes, and not more: not even a marker."""
    key, version_id = put(stores, "scrubbed")
    store = stores("scrub-worker")

    assert store.head(key).version_id == version_id
    assert b"".join(store.read_range(key, version_id, 0, 10)) == b"x" * 10
    assert key in {each.key for each in store.versions_page(PREFIX, None).entries}
    with pytest.raises(Missing):
        store.head(f"{PREFIX}nothing-here")
    with pytest.raises(Denied):
        store.put_new(f"{PREFIX}new", BODY, BODY.checksum)
    with pytest.raises(Denied):
        store.mark_deleted(key)


def test_an_operator_restores_a_version_and_holds_it(stores: Stores) -> None:
    """A deleted object is put back from its version by the store itself; a legal hold is placed and seen."""
    key, version_id = put(stores, "restored")
    stores("agent-tier").mark_deleted(key)
    store = stores("operator")
    source = ObjectRef(
        key=key,
        size_bytes=100,
        checksum=BODY.checksum,
        checksum_algorithm=CHECKSUM_ALGORITHM,
        version_id=version_id,
    )

    store.copy_version(source)

    live = store.head(key)
    assert (live.checksum, live.version_id != version_id) == (BODY.checksum, True)
    store.set_hold(key, version_id, held=True)
    assert store.is_held(key, version_id)


@pytest.mark.parametrize("role", [role.name for role in ROLES if iam.needs_bucket(role)])
def test_no_role_deletes_a_version_or_turns_versions_off(stores: Stores, role: str) -> None:
    """What the adapter refuses to ask, the store would refuse to do."""
    key, version_id = put(stores, f"kept-from-{role}")
    client = stores(role)._client

    with pytest.raises(ClientError, match="AccessDenied"):
        client.delete_object(Bucket=BUCKET, Key=key, VersionId=version_id)
    with pytest.raises(ClientError, match="AccessDenied"):
        client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Suspended"})


def test_ingest_keeps_to_its_tables(stores: Stores) -> None:
    """Tables are written, read and cleaned under their own prefix; segments are out of reach."""
    store, key = stores("ingest"), f"{iam.TABLES_PREFIX}/audit_events/part-0"
    client = store._client

    client.put_object(Bucket=BUCKET, Key=key, Body=b"rows")
    assert client.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"rows"
    client.delete_object(Bucket=BUCKET, Key=key)
    with pytest.raises(Denied):
        store.put_new(f"{PREFIX}segment", BODY, BODY.checksum)
    with pytest.raises(Denied):
        store.mark_deleted(f"{PREFIX}segment")
