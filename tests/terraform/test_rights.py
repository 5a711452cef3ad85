"""What each role may and may not, on a server that enforces the policies which Terraform makes.

moto maps requests to actions by itself. It leaves conditions aside, and takes a legal hold for a put: that a
listing is held to its prefix, the key to S3, and holds to the restorer, is read from the documents.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import settings as moto_settings
from moto.core.authorization import ActionAuthenticatorMixin

from seawall.init.permissions.roles import NEVER
from tests.terraform.rights import BUCKET, PREFIX, policies
from tests.terraform.tools import NotToBeHad, found, moto

pytestmark = pytest.mark.slow  # Terraform, and a server

ROLES = ("uploader", "janitor", "auditor", "restorer")
KEY = f"{PREFIX}/cluster/topic/0/1.log"
Clients = dict[str, Any]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    try:
        terraform = found()
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    return policies(terraform, tmp_path_factory.mktemp("rights"))


@pytest.fixture(scope="module")
def clients(documents: dict[str, str]) -> Iterator[Clients]:
    """A client for each role over one bucket, and one that may everything, as `owner`."""
    with moto() as url:
        anyone: dict[str, Any] = {
            "region_name": "us-east-1",
            "endpoint_url": url,
            "aws_access_key_id": "anyone",
            "aws_secret_access_key": "anything",
        }
        s3, iam = boto3.client("s3", **anyone), boto3.client("iam", **anyone)
        s3.create_bucket(Bucket=BUCKET, ObjectLockEnabledForBucket=True)
        everything = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
        owner = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
        made: Clients = {}
        for name, document in {**documents, "owner": owner}.items():
            iam.create_user(UserName=name)
            iam.put_user_policy(UserName=name, PolicyName="seawall", PolicyDocument=document)
            key = iam.create_access_key(UserName=name)["AccessKey"]
            own = {
                **anyone,
                "aws_access_key_id": key["AccessKeyId"],
                "aws_secret_access_key": key["SecretAccessKey"],
            }
            made[name] = boto3.client("s3", **own)
        moto_settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
        try:
            yield made
        finally:
            moto_settings.INITIAL_NO_AUTH_ACTION_COUNT = float("inf")
            ActionAuthenticatorMixin.request_count = 0


def version(clients: Clients) -> str:
    """Of an object that is there."""
    return str(clients["owner"].put_object(Bucket=BUCKET, Key=KEY, Body=b"x")["VersionId"])


def acts(client: Any, version_id: str) -> dict[str, Callable[[], object]]:
    """Each call of which some role may not make it."""
    rule = {"ID": "x", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}
    return {
        "put": lambda: client.put_object(Bucket=BUCKET, Key=KEY, Body=b"y"),
        "put elsewhere": lambda: client.put_object(Bucket=BUCKET, Key="other/key", Body=b"y"),
        "put a table": lambda: client.put_object(Bucket=BUCKET, Key=f"{PREFIX}-tables/part", Body=b"y"),
        "read a version": lambda: client.get_object(Bucket=BUCKET, Key=KEY, VersionId=version_id),
        "mark deleted": lambda: client.delete_object(Bucket=BUCKET, Key=KEY),
        "list versions": lambda: client.list_object_versions(Bucket=BUCKET, Prefix=f"{PREFIX}/"),
        "remove a version": lambda: client.delete_object(Bucket=BUCKET, Key=KEY, VersionId=version_id),
        "edit the lifecycle": lambda: client.put_bucket_lifecycle_configuration(
            Bucket=BUCKET, LifecycleConfiguration={"Rules": [rule]}
        ),
        "turn versions off": lambda: client.put_bucket_versioning(
            Bucket=BUCKET, VersioningConfiguration={"Status": "Suspended"}
        ),
    }


MAY = {
    "uploader": {"put", "read a version"},
    "janitor": {"mark deleted"},
    "auditor": {"read a version", "list versions", "put a table"},
    "restorer": {"put", "read a version", "list versions"},
}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_does_its_work_and_no_others(clients: Clients, role: str) -> None:
    """Of every call: it works where the role is for it, and is refused where not. None removes a version,
    edits the lifecycle or turns versions off."""
    version_id = version(clients)
    answers = {name: answer(act) for name, act in acts(clients[role], version_id).items()}

    assert set(answers.values()) == {"done", "AccessDenied"}
    assert {name for name, each in answers.items() if each == "done"} == MAY[role]


def answer(act: Callable[[], object]) -> str:
    try:
        act()
    except ClientError as refused:
        return str(refused.response["Error"]["Code"])
    return "done"


@pytest.mark.parametrize("role", ROLES)
def test_what_nobody_may_is_denied_besides(documents: dict[str, str], role: str) -> None:
    """Whatever another policy grants: what `seawall init` denies, on the bucket and everything in it. What
    is allowed names no wildcard, is held to the prefix, and the key is used by way of S3 alone."""
    statements = {each["Sid"]: each for each in json.loads(documents[role])["Statement"]}
    never = statements.pop("Never")

    assert never["Effect"] == "Deny"
    assert set(NEVER) == set(never["Action"])
    assert set(never["Resource"]) == {f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"}
    for each in statements.values():
        named = [each["Action"]] if isinstance(each["Action"], str) else each["Action"]
        assert not any("*" in action for action in named)
    assert statements["Segments"]["Resource"] == f"arn:aws:s3:::{BUCKET}/{PREFIX}/*"
    assert f"{PREFIX}/*" in str(statements["Listings"]["Condition"]["StringLikeIfExists"]["s3:prefix"])
    assert ("s3:PutObjectLegalHold" in statements["Segments"]["Action"]) is (role == "restorer")
    if "Key" in statements:
        assert "kms:ViaService" in str(statements["Key"]["Condition"])
