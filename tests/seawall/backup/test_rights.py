"""Credentials that may not list or read versions, on a real S3 server: said as such, and nothing changed.

versitygw asks for GetObject also where a version is named, and AWS for GetObjectVersion: a user who may read
has both here, and one who may not neither.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest

from backup.topic.source import check_versions
from rules.events import RestoreTarget
from seawall.backup.bucket.s3 import keeps_window, look
from seawall.doctor.finding import Status
from seawall.settings import S3Settings
from tests.backup.world import World
from tests.cluster.versitygw import (
    ACCESS_KEY_ID,
    SECRET_ACCESS_KEY,
    NotToBeHad,
    VersityGateway,
    program,
)
from tests.tiering.store.memory import MemoryStore
from tiering.store.errors import Denied
from tiering.store.patient import PatientStore, patient
from tiering.store.s3 import S3Store, S3StoreSettings

pytestmark = pytest.mark.slow  # a real S3 server, with users of its own

USER = "restricted"
OF_BUCKET = ("ListBucket", "GetBucketVersioning", "ListBucketMultipartUploads")
READ = ("GetObject", "GetObjectVersion")
OF_OBJECTS = ("PutObject", "DeleteObject", "AbortMultipartUpload", "ListMultipartUploadParts")


@dataclass
class Server:
    """A gateway that knows a user, and buckets in which he may do what a test lets him."""

    gateway: VersityGateway
    user: Any

    def store(self, bucket: str, session: Any) -> PatientStore:
        settings = S3StoreSettings(
            bucket=bucket,
            endpoint_url=self.gateway.endpoint_url,
            region="us-east-1",
            addressing_style="path",
            copies_where_absent=True,
        )
        return patient(S3Store(settings, session))

    def expired(self) -> tuple[World, str]:
        """Four copies by the bucket's owner, of which three are expired."""
        bucket = self.gateway.new_bucket()
        world = World()
        world.objects = self.store(bucket, self.gateway.session())
        world.store = cast(MemoryStore, world.objects._store)
        for place in range(4):
            world.copy(10 * place, 10 * place + 10)
        world.expire_below(30)
        return world, bucket

    def let(self, bucket: str, *more: str) -> PatientStore:
        """The bucket as the user has it, who may do `more` than he always may."""
        of_bucket = [*OF_BUCKET, *(each for each in more if "Bucket" in each)]
        of_objects = [*OF_OBJECTS, *(each for each in more if "Bucket" not in each)]
        statements = [
            {
                "Effect": "Allow",
                "Principal": {"AWS": [USER]},
                "Action": [f"s3:{name}" for name in names],
                "Resource": [f"arn:aws:s3:::{bucket}{what}"],
            }
            for names, what in ((of_bucket, ""), (of_objects, "/*"))
        ]
        owner = self.gateway.session().client("s3", endpoint_url=self.gateway.endpoint_url)
        owner.put_bucket_policy(
            Bucket=bucket, Policy=json.dumps({"Version": "2012-10-17", "Statement": statements})
        )
        return self.store(bucket, self.user)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    try:
        built = program()
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    with VersityGateway(built, tmp_path_factory.mktemp("rights"), has_users=True) as gateway:
        yield Server(gateway, gateway.add_user(USER))


def everything(store: PatientStore) -> list[tuple[str, str]]:
    return [(each.key, each.version_id) for each in store.list_versions("")]


def test_who_may_not_list_versions_can_neither_plan_nor_apply(server: Server) -> None:
    """Denied by the store's word at the first look; no version, no record and no promise more."""
    world, bucket = server.expired()
    owners, plan = world.objects, world.plan()
    before, record = everything(owners), world.record

    world.objects = server.let(bucket, *READ)
    with pytest.raises(Denied, match="list versions"):
        world.plan()
    with pytest.raises(Denied, match="list versions"):
        world.apply(plan)

    assert (everything(owners), world.record, world.events) == (before, record, [])


def test_who_may_not_read_versions_copies_nothing(server: Server) -> None:
    """He may list them, and so plan; the first copy is denied, the promise taken back, nothing is live."""
    world, bucket = server.expired()
    owners, before = world.objects, everything(world.objects)
    world.objects = server.let(bucket, "ListBucketVersions")
    plan, start = world.plan(), world.record.log_start

    with pytest.raises(Denied):
        world.apply(plan)
    with pytest.raises(Denied):
        check_versions(world.plan(0, 30, target=RestoreTarget.TOPIC), world.objects)

    assert everything(owners) == before
    assert (world.record.log_start, world.record.keep_until_ms, world.events) == (start, None, [])

    world.objects = server.let(bucket, "ListBucketVersions", *READ)
    assert world.apply(world.plan()).objects_put_back == 9


def test_a_store_without_lifecycles_takes_nothing_by_one(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """versitygw has none: versions, lock and lifecycle are told, none of them as unknown or as a failure."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_ACCESS_KEY)
    bucket = server.gateway.new_bucket()
    settings = S3Settings(bucket=bucket, endpoint_url=server.gateway.endpoint_url, region="us-east-1")

    told = {each.subject: each.status for each in keeps_window(settings, "", 7)}

    assert told["s3 versioning"] is told["s3 object lock"] is Status.OK
    assert told["s3 lifecycle"] is Status.WARN
    assert not {Status.UNKNOWN, Status.FAIL} & set(told.values())


def test_check_names_each_right_that_is_missing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """`backup check` with such credentials: a failure for each, with the action that has to be allowed."""
    _, bucket = server.expired()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", USER)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", USER)
    settings = S3Settings(bucket=bucket, endpoint_url=server.gateway.endpoint_url, region="us-east-1")

    def told() -> dict[str, tuple[Status, str | None]]:
        found = [each for each in look(settings, "", 7) if each.subject == "s3 own rights"]
        return {each.detail.split(":")[0]: (each.status, each.remedy) for each in found}

    server.let(bucket, *READ)
    assert told()["may not list versions"][0] is Status.FAIL
    assert "s3:ListBucketVersions" in (told()["may not list versions"][1] or "")
    server.let(bucket, "ListBucketVersions")
    assert told()["may list versions"][0] is Status.OK
    assert told()["may not read a version"][0] is Status.FAIL
    assert "s3:GetObjectVersion" in (told()["may not read a version"][1] or "")
