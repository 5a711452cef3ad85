"""The embedded bucket behaves as S3 does where Seawall depends on it, and can fail as S3 can."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from seawall.local.bucket import LocalBucket
from seawall.local.s3 import connect

CRC_OF_HELLO = "mnG7TA=="  # CRC-32C of b"hello"
WRONG_CRC = "AAAAAQ=="
FAR_FUTURE = datetime(2100, 1, 1, tzinfo=timezone.utc)


def error_code(caught: pytest.ExceptionInfo[ClientError]) -> str:
    return caught.value.response["Error"]["Code"]


def test_a_put_with_the_right_checksum_is_kept_with_it(bucket: LocalBucket) -> None:
    """The checksum comes back on a read that asks for it."""
    s3 = bucket.client()

    s3.put_object(Bucket=bucket.name, Key="right", Body=b"hello", ChecksumCRC32C=CRC_OF_HELLO)

    kept = s3.get_object(Bucket=bucket.name, Key="right", ChecksumMode="ENABLED")
    assert kept["Body"].read() == b"hello"
    assert kept["ChecksumCRC32C"] == CRC_OF_HELLO


def test_a_put_with_a_wrong_checksum_is_refused_and_leaves_nothing(bucket: LocalBucket) -> None:
    """The store checks what it was sent against what was stated."""
    s3 = bucket.client()

    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket=bucket.name, Key="wrong", Body=b"hello", ChecksumCRC32C=WRONG_CRC)

    assert error_code(caught) == "BadDigest"
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket.name, Prefix="wrong")


def test_a_part_with_a_wrong_checksum_is_refused(bucket: LocalBucket) -> None:
    """The same for a part of a multipart upload."""
    s3 = bucket.client()
    upload = s3.create_multipart_upload(Bucket=bucket.name, Key="parts", ChecksumAlgorithm="CRC32C")[
        "UploadId"
    ]

    with pytest.raises(ClientError) as caught:
        s3.upload_part(
            Bucket=bucket.name,
            Key="parts",
            UploadId=upload,
            PartNumber=1,
            Body=b"hello",
            ChecksumCRC32C=WRONG_CRC,
        )

    assert error_code(caught) == "BadDigest"


def test_a_key_is_written_only_once_when_asked(bucket: LocalBucket) -> None:
    """If-None-Match: * refuses a second object, and an overwrite without it makes a second version."""
    s3 = bucket.client()
    s3.put_object(Bucket=bucket.name, Key="once", Body=b"first", IfNoneMatch="*")

    with pytest.raises(ClientError) as caught:
        s3.put_object(Bucket=bucket.name, Key="once", Body=b"second", IfNoneMatch="*")
    s3.put_object(Bucket=bucket.name, Key="once", Body=b"third")

    assert error_code(caught) == "PreconditionFailed"
    versions = s3.list_object_versions(Bucket=bucket.name, Prefix="once")["Versions"]
    assert len({version["VersionId"] for version in versions}) == 2


def test_a_deleted_object_is_still_there_as_a_version(bucket: LocalBucket) -> None:
    """A delete writes a marker; the bytes can be read by version id."""
    s3 = bucket.client()
    version = s3.put_object(Bucket=bucket.name, Key="deleted", Body=b"kept")["VersionId"]

    s3.delete_object(Bucket=bucket.name, Key="deleted")

    with pytest.raises(ClientError) as caught:
        s3.get_object(Bucket=bucket.name, Key="deleted")
    assert error_code(caught) == "NoSuchKey"
    kept = s3.get_object(Bucket=bucket.name, Key="deleted", VersionId=version)
    assert kept["Body"].read() == b"kept"


def test_a_locked_version_cannot_be_removed(bucket: LocalBucket) -> None:
    """Object lock in compliance mode holds against its own writer."""
    s3 = bucket.client()
    version = s3.put_object(
        Bucket=bucket.name,
        Key="locked",
        Body=b"kept",
        ChecksumAlgorithm="CRC32C",
        ObjectLockMode="COMPLIANCE",
        ObjectLockRetainUntilDate=FAR_FUTURE,
    )["VersionId"]

    with pytest.raises(ClientError) as caught:
        s3.delete_object(Bucket=bucket.name, Key="locked", VersionId=version)

    assert error_code(caught) == "AccessDenied"


def test_a_range_is_read_and_its_place_is_said(bucket: LocalBucket) -> None:
    """Bytes [10, 20) of an object."""
    s3 = bucket.client()
    s3.put_object(Bucket=bucket.name, Key="range", Body=bytes(range(100)))

    answer = s3.get_object(Bucket=bucket.name, Key="range", Range="bytes=10-19")

    assert answer["Body"].read() == bytes(range(10, 20))
    assert answer["ContentRange"] == "bytes 10-19/100"


def test_an_outage_refuses_and_forgets_nothing(bucket: LocalBucket) -> None:
    """During it there is nobody to connect to; afterwards every object is there."""
    s3 = bucket.client()
    s3.put_object(Bucket=bucket.name, Key="outage", Body=b"before")

    with bucket.outage(), pytest.raises(EndpointConnectionError):
        s3.get_object(Bucket=bucket.name, Key="outage")

    assert s3.get_object(Bucket=bucket.name, Key="outage")["Body"].read() == b"before"


def test_a_killed_server_comes_back_empty_at_the_same_address(bucket: LocalBucket) -> None:
    """What is lost with the process is lost; the bucket with its versions is made again."""
    address = bucket.address
    bucket.client().put_object(Bucket=bucket.name, Key="lost", Body=b"x")

    bucket.kill()
    bucket.restart()

    s3 = bucket.client()
    assert bucket.address == address
    assert "Contents" not in s3.list_objects_v2(Bucket=bucket.name)
    assert s3.get_bucket_versioning(Bucket=bucket.name)["Status"] == "Enabled"


def test_the_client_is_blind_to_the_user_s_environment(
    bucket: LocalBucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A profile that does not exist, a dead proxy, a broken CA bundle, foreign keys: none matters."""
    for name, value in {
        "AWS_PROFILE": "no-such-profile",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "else",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:1",
        "AWS_CA_BUNDLE": "/no/such/file",
        "REQUESTS_CA_BUNDLE": "/no/such/file",
        "http_proxy": "http://127.0.0.1:1",
        "HTTP_PROXY": "http://127.0.0.1:1",
        "no_proxy": "",
    }.items():
        monkeypatch.setenv(name, value)

    answer = connect(bucket.address).list_objects_v2(Bucket=bucket.name)

    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 200
