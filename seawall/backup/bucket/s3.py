"""Asks the bucket what it is set to, and what these credentials may do. It leaves nothing behind.

Whether it may write is asked by a multipart upload that is begun and aborted: it is never an object.

Owns the requests, and what each refusal means. Refuses to try a delete of a version: nobody here may, and a
store that allowed it would have done it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from seawall.backup.bucket import (
    LOCK,
    Lock,
    Rule,
    Unread,
    judge_lifecycle,
    judge_lock,
    judge_public,
    lock_of,
    rule_of,
)
from seawall.doctor.finding import Finding, fail, ok, skipped, unknown
from seawall.doctor.s3 import examine
from seawall.settings import S3Settings

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_DEADLINES = Config(
    connect_timeout=5,
    read_timeout=10,
    retries={"total_max_attempts": 2, "mode": "standard"},
    user_agent_extra="seawall-backup-check",
)
PROBE = "seawall-backup-check"  # a key that is never an object
PAGE_ENTRIES = 1000  # of fewer all could be delete markers, and there would be no version to try
NO_SUCH_FEATURE = "NotImplemented"
_NOTHING_SET = {
    "NoSuchLifecycleConfiguration",
    "NoSuchPublicAccessBlockConfiguration",
    "NoSuchBucketPolicy",
    "ObjectLockConfigurationNotFoundError",
}


def look(settings: S3Settings, prefix: str, window_days: int) -> Iterator[Finding]:
    """Everything that the promise of the window needs. `prefix` is the cluster's."""
    yield from keeps_window(settings, prefix, window_days)
    if settings.bucket is None:
        return
    client, bucket = _client(settings), settings.bucket
    yield from judge_public(_block(client, bucket), _is_public(client, bucket))
    yield from _own_rights(client, bucket, prefix)


def keeps_window(settings: S3Settings, prefix: str, window_days: int) -> Iterator[Finding]:
    """Of the bucket alone: versions, lock and lifecycle against the window."""
    yield from (each for each in examine(settings) if each.subject != LOCK)
    if settings.bucket is None:
        return
    client, bucket = _client(settings), settings.bucket
    yield from judge_lock(_lock(client, bucket), window_days)
    yield from judge_lifecycle(_rules(client, bucket), prefix, window_days)


def _client(settings: S3Settings) -> S3Client:
    client: S3Client = boto3.Session(region_name=settings.region).client(
        "s3", endpoint_url=settings.endpoint_url, config=_DEADLINES
    )
    return client


def _lock(client: S3Client, bucket: str) -> Lock | Unread | None:
    asked = _asked(
        lambda: client.get_object_lock_configuration(Bucket=bucket), "s3:GetBucketObjectLockConfiguration"
    )
    if isinstance(asked, Unread) or asked is None:
        return asked
    return lock_of(asked.get("ObjectLockConfiguration", {}))


def _rules(client: S3Client, bucket: str) -> list[Rule] | Unread:
    asked = _asked(
        lambda: client.get_bucket_lifecycle_configuration(Bucket=bucket),
        "s3:GetLifecycleConfiguration",
        NO_SUCH_FEATURE,  # a store that has no lifecycles takes nothing by one
    )
    if isinstance(asked, Unread):
        return asked
    found = (rule_of(each) for each in (asked or {}).get("Rules", ()))
    return [rule for rule in found if rule is not None]


def _block(client: S3Client, bucket: str) -> dict[str, bool] | Unread | None:
    asked = _asked(lambda: client.get_public_access_block(Bucket=bucket), "s3:GetBucketPublicAccessBlock")
    if isinstance(asked, Unread) or asked is None:
        return asked
    found: dict[str, bool] = asked["PublicAccessBlockConfiguration"]
    return found


def _is_public(client: S3Client, bucket: str) -> bool | Unread:
    asked = _asked(lambda: client.get_bucket_policy_status(Bucket=bucket), "s3:GetBucketPolicyStatus")
    if isinstance(asked, Unread):
        return asked
    return bool((asked or {}).get("PolicyStatus", {}).get("IsPublic", False))


def _asked(ask: Callable[[], Any], action: str, *nothing_set: str) -> Any:
    """The answer; None where nothing is set; Unread."""
    try:
        return ask()
    except ClientError as refused:
        if refused.response.get("Error", {}).get("Code") in {*_NOTHING_SET, *nothing_set}:
            return None
        return Unread(f"the store does not say: {refused}", f"Allow {action} on the bucket.")
    except BotoCoreError as failure:
        return Unread(f"the store does not answer: {failure}", "Check s3.endpoint_url and the network.")


def _own_rights(client: S3Client, bucket: str, prefix: str) -> Iterator[Finding]:
    subject = "s3 own rights"
    versions: list[Any] = []

    def list_versions() -> None:
        answer = client.list_object_versions(Bucket=bucket, Prefix=prefix, MaxKeys=PAGE_ENTRIES)
        versions.extend(answer.get("Versions", ()))

    def write() -> None:
        key = f"{prefix}{PROBE}"
        begun = client.create_multipart_upload(Bucket=bucket, Key=key)
        client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=begun["UploadId"])

    yield _may(subject, "list versions", "s3:ListBucketVersions", list_versions)
    yield _may(subject, "write", "s3:PutObject and s3:AbortMultipartUpload", write)
    if not versions:
        yield skipped(subject, "may it read a version: there is none to try")
        return
    found = versions[0]

    def read_version() -> None:
        where = {"Bucket": bucket, "Key": found["Key"], "VersionId": found["VersionId"]}
        client.head_object(**where)

    yield _may(subject, "read a version", "s3:GetObjectVersion", read_version)


def _may(subject: str, what: str, actions: str, act: Callable[[], None]) -> Finding:
    remedy = f"Allow {actions} on the bucket and the prefix."
    try:
        act()
    except ClientError as refused:
        if refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode") in (401, 403):
            return fail(subject, f"may not {what}: {refused}", remedy)
        return unknown(subject, f"may it {what}: {refused}", remedy)
    except BotoCoreError as failure:
        return unknown(subject, f"may it {what}: {failure}", remedy)
    return ok(subject, f"may {what}")
