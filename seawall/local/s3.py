"""The S3 client for a bucket on this machine, made in this one place, and what the demo asks of it.

Everything about it is said here: address, credentials, region. Nothing is taken from the user's environment
or files, neither keys nor a profile nor a proxy nor a CA bundle, so that a demo can never reach a real
account and never fails over somebody's settings.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config

from tiering.store.s3 import S3Store, S3StoreSettings

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


def segment_store(address: S3Address) -> S3Store:
    """The bucket as the rest of Seawall uses one, with who we say we are here."""
    session = boto3.Session(
        aws_access_key_id=address.access_key_id,
        aws_secret_access_key=address.secret_access_key,
        region_name=address.region,
    )
    settings = S3StoreSettings(
        bucket=address.bucket,
        endpoint_url=address.endpoint_url,
        region=address.region,
        addressing_style="path",
    )
    return S3Store(settings, session)
