"""Looks at the bucket: credentials, reachability, versioning, object lock. It touches no object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from seawall.doctor.finding import Finding, Status, fail, ok, skipped, unknown, warn
from seawall.settings import S3Settings

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

_DEADLINES = Config(
    connect_timeout=5,
    read_timeout=10,
    retries={"total_max_attempts": 2, "mode": "standard"},
    user_agent_extra="seawall-doctor",
)
_BUCKET_SUBJECTS = ("s3 bucket", "s3 versioning", "s3 object lock")


def examine(settings: S3Settings) -> Iterator[Finding]:
    if settings.bucket is None:
        remedy = "Set s3.bucket in seawall.toml, or give --bucket NAME."
        yield skipped("s3", "not configured: s3.bucket is not set", remedy)
        return
    client, credentials = _open(settings)
    yield credentials
    if client is None:
        yield from _not_looked_at(*_BUCKET_SUBJECTS, reason="there are no credentials to look with")
        return
    bucket = _bucket(client, settings.bucket)
    yield bucket
    if bucket.status is not Status.OK:
        yield from _not_looked_at(*_BUCKET_SUBJECTS[1:], reason="the bucket cannot be reached")
        return
    yield _versioning(client, settings.bucket)
    yield _object_lock(client, settings.bucket)


def _open(settings: S3Settings) -> tuple[S3Client | None, Finding]:
    subject = "s3 credentials"
    remedy = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give this machine a role."
    try:
        session = boto3.Session(region_name=settings.region)
        found = session.get_credentials()
        if found is None:
            return None, fail(subject, "boto3's chain (environment, profiles, role) finds none", remedy)
        client = session.client("s3", endpoint_url=settings.endpoint_url, config=_DEADLINES)
    except (BotoCoreError, ValueError) as failure:
        return None, fail(subject, str(failure), remedy)
    return client, ok(subject, f"found by boto3 in: {found.method}")


def _bucket(client: S3Client, bucket: str) -> Finding:
    subject = "s3 bucket"
    where = client.meta.endpoint_url
    try:
        client.head_bucket(Bucket=bucket)
    except ClientError as refused:
        status = refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return fail(subject, *_refusal(status, bucket, where, refused))
    except BotoCoreError as failure:
        remedy = "Check s3.endpoint_url and s3.region, and the network between."
        return fail(subject, f"{where} does not answer: {failure}", remedy)
    return ok(subject, f"{bucket} at {where}")


def _refusal(status: int | None, bucket: str, where: str, refused: ClientError) -> tuple[str, str]:
    if status == 404:
        return f"there is no bucket {bucket} at {where}", "Create it, or correct s3.bucket."
    if status == 301:
        region = (
            refused.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("x-amz-bucket-region")
        )
        return f"{bucket} is in region {region}", f'Set s3.region to "{region}".'
    if status in (401, 403):
        remedy = "Check that the credentials are the right ones and allow s3:ListBucket on the bucket."
        return f"{where} denies these credentials access to {bucket}", remedy
    return f"{where} answered: {refused}", "See what the store says about this answer."


def _versioning(client: S3Client, bucket: str) -> Finding:
    subject = "s3 versioning"
    try:
        state = client.get_bucket_versioning(Bucket=bucket).get("Status", "never enabled")
    except (ClientError, BotoCoreError) as failure:
        return unknown(subject, _told(failure), "Allow s3:GetBucketVersioning on the bucket.")
    if state == "Enabled":
        return ok(subject, "enabled")
    # Without it a delete, ours or anyone's, is for ever: nothing could be restored.
    remedy = (
        f"Run: aws s3api put-bucket-versioning --bucket {bucket} --versioning-configuration Status=Enabled"
    )
    return fail(subject, f"{state.lower()}: what is deleted could not be restored", remedy)


def _object_lock(client: S3Client, bucket: str) -> Finding:
    subject = "s3 object lock"
    remedy = "Enable Object Lock on the bucket; some stores allow that only when the bucket is created."
    try:
        answer = client.get_object_lock_configuration(Bucket=bucket)
    except ClientError as refused:
        if refused.response.get("Error", {}).get("Code") == "ObjectLockConfigurationNotFoundError":
            return warn(subject, "not enabled: a hold would bind Seawall, but not the store", remedy)
        return unknown(subject, _told(refused), "Allow s3:GetBucketObjectLockConfiguration on the bucket.")
    except BotoCoreError as failure:
        return unknown(subject, _told(failure))
    if answer.get("ObjectLockConfiguration", {}).get("ObjectLockEnabled") != "Enabled":
        return warn(subject, "not enabled: a hold would bind Seawall, but not the store", remedy)
    return ok(subject, "enabled")


def _told(failure: ClientError | BotoCoreError) -> str:
    return f"the store does not say: {failure}"


def _not_looked_at(*subjects: str, reason: str) -> Iterator[Finding]:
    for subject in subjects:
        yield unknown(subject, reason)
