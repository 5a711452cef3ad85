"""The same rights on a real S3 server with Object Lock: the roles' policies as one policy of the bucket.

versitygw knows no IAM policies; a bucket's policy does the same for its user. It knows no conditions: they
are left out, and what they hold back is not shown here. A policy is a file's attribute, which has little
room: a bucket for each role.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.cluster.versitygw import NotToBeHad as NoGateway
from tests.cluster.versitygw import VersityGateway, program
from tests.terraform.rights import BUCKET, PREFIX, policies
from tests.terraform.tools import NotToBeHad, found

pytestmark = pytest.mark.slow  # Terraform, and a server

ROLES = ("uploader", "janitor", "auditor", "restorer")
KEY = f"{PREFIX}/cluster/topic/0/1.log"


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """A client for each role over one bucket with a lock, and its owner's as `owner`."""
    try:
        documents = policies(found(), tmp_path_factory.mktemp("rights"))
        server = program()
    except (NotToBeHad, NoGateway) as reason:
        pytest.skip(str(reason))
    with VersityGateway(server, tmp_path_factory.mktemp("users"), has_users=True) as gateway:

        def client(session: boto3.Session) -> Any:
            return session.client("s3", endpoint_url=gateway.endpoint_url)

        made = {"owner": client(gateway.session())}
        for role in ROLES:
            made[role] = client(gateway.add_user(role))
            made["owner"].create_bucket(Bucket=f"{BUCKET}-{role}", ObjectLockEnabledForBucket=True)
            document = {"Version": "2012-10-17", "Statement": list(of_user(role, documents[role]))}
            policy = json.dumps(document, separators=(",", ":")).replace(
                f":::{BUCKET}", f":::{BUCKET}-{role}"
            )
            made["owner"].put_bucket_policy(Bucket=f"{BUCKET}-{role}", Policy=policy)
        yield made


def of_user(name: str, document: str) -> Iterator[dict[str, Any]]:
    """A role's statements as its bucket's policy has them: for one user, about S3 alone."""
    for each in json.loads(document)["Statement"]:
        named = [each["Action"]] if isinstance(each["Action"], str) else each["Action"]
        if each["Sid"] == "Key":
            continue
        for resource in [each["Resource"]] if isinstance(each["Resource"], str) else each["Resource"]:
            is_object = resource.endswith("*")
            actions = [action for action in named if is_of_object(action) is is_object]
            if actions:
                yield {
                    "Effect": each["Effect"],
                    "Principal": {"AWS": [name]},
                    "Action": actions,
                    "Resource": [resource],
                }


def is_of_object(action: str) -> bool:
    return "Bucket" not in action and "Lifecycle" not in action


def acts(client: Any, bucket: str, version_id: str) -> dict[str, Callable[[], object]]:
    at = {"Bucket": bucket, "Key": KEY}
    on = {"LegalHold": {"Status": "ON"}, "VersionId": version_id}
    return {
        "put": lambda: client.put_object(**at, Body=b"y"),
        "put elsewhere": lambda: client.put_object(Bucket=bucket, Key="other/key", Body=b"y"),
        "read a version": lambda: client.get_object(**at, VersionId=version_id),
        "hold": lambda: client.put_object_legal_hold(**at, **on),
        "remove a version": lambda: client.delete_object(**at, VersionId=version_id),
        "remove a version past its lock": lambda: client.delete_object(
            **at, VersionId=version_id, BypassGovernanceRetention=True
        ),
        "turn versions off": lambda: client.put_bucket_versioning(
            Bucket=bucket, VersioningConfiguration={"Status": "Suspended"}
        ),
        "mark deleted": lambda: client.delete_object(**at),
    }


MAY = {
    "uploader": {"put", "read a version"},
    "janitor": {"mark deleted"},
    "auditor": {"read a version"},
    "restorer": {"put", "read a version", "hold"},
}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_does_its_work_and_no_others(clients: dict[str, Any], role: str) -> None:
    """Of every call: it works where the role is for it, and is refused where not; what is kept is there."""
    owner, bucket = clients["owner"], f"{BUCKET}-{role}"
    version_id = str(owner.put_object(Bucket=bucket, Key=KEY, Body=b"x")["VersionId"])

    answers = {name: answer(act) for name, act in acts(clients[role], bucket, version_id).items()}

    assert set(answers.values()) == {"done", "AccessDenied"}, answers
    assert {name for name, each in answers.items() if each == "done"} == MAY[role]
    assert owner.get_object(Bucket=bucket, Key=KEY, VersionId=version_id)["Body"].read() == b"x"


def answer(act: Callable[[], object]) -> str:
    try:
        act()
    except ClientError as refused:
        return str(refused.response["Error"]["Code"])
    return "done"
