"""The S3 client for a bucket on this machine, made in this one place, and what the demo asks of it.

Everything about it is said here: address, credentials, region. Nothing is taken from the user's environment
or files, neither keys nor a profile nor a proxy nor a CA bundle, so that a demo can never reach a real
account and never fails over somebody's settings.
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import ClientError

from seawall.local.errors import UploadRefused

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

CONNECT_TIMEOUT_S = 5
READ_TIMEOUT_S = 60
ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Address:
    """Where a bucket is and who we say we are."""

    endpoint_url: str
    bucket: str
    region: str = "us-east-1"
    access_key_id: str = "seawall-local"
    secret_access_key: str = field(default="seawall-local", repr=False)


def connect(address: S3Address) -> S3Client:
    """A client for this address, blind to everything around it."""
    # (name in the config file, environment variable, default, conversion)
    nowhere = {
        "profile": (None, None, None, None),
        "config_file": (None, None, os.devnull, None),
        "credentials_file": (None, None, os.devnull, None),
    }
    session = boto3.session.Session(
        botocore_session=botocore.session.Session(session_vars=nowhere),
        aws_access_key_id=address.access_key_id,
        aws_secret_access_key=address.secret_access_key,
        region_name=address.region,
    )
    return session.client(
        "s3",
        endpoint_url=address.endpoint_url,
        verify=False,  # plain http; this only keeps the environment's CA bundle out of it
        config=Config(
            proxies={},
            s3={"addressing_style": "path"},
            signature_version="s3v4",
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        ),
    )


def make_bucket(address: S3Address) -> None:
    """A bucket with object lock, which S3 grants only at creation and only with versions."""
    connect(address).create_bucket(Bucket=address.bucket, ObjectLockEnabledForBucket=True)


def base64_crc32c(crc: int) -> str:
    """A CRC-32C as S3's headers have it."""
    return base64.b64encode(crc.to_bytes(4, "big")).decode()


def put_once(s3: S3Client, bucket: str, key: str, body: bytes, *, crc: int) -> str:
    """Store an object that was not there, with the checksum that it must have; its version id."""
    try:
        answer = s3.put_object(
            Bucket=bucket, Key=key, Body=body, ChecksumCRC32C=base64_crc32c(crc), IfNoneMatch="*"
        )
    except ClientError as refused:
        why = refused.response["Error"]["Code"]
        raise UploadRefused(name=s3.meta.endpoint_url, key=key, why=why) from refused
    return answer["VersionId"]


def sizes_by_key(s3: S3Client, bucket: str, prefix: str) -> dict[str, int]:
    """Every object under a prefix, page by page."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return {found["Key"]: found["Size"] for page in pages for found in page.get("Contents", [])}


def stored_crc32c(s3: S3Client, bucket: str, key: str) -> str | None:
    """The checksum that the store keeps with the object, as its headers have it."""
    return s3.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED").get("ChecksumCRC32C")


def read_range(s3: S3Client, bucket: str, key: str, start: int, end: int) -> bytes:
    """Bytes [start, end) of an object."""
    answer = s3.get_object(Bucket=bucket, Key=key, Range=f"bytes={start}-{end - 1}")
    return answer["Body"].read()
