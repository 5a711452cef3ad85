"""The S3 adapter: what it may ask S3 for, and what it makes of S3's refusals."""

from __future__ import annotations

import ast
import inspect
from typing import Any

import boto3
import pytest

from tests.cluster.versitygw import ACCESS_KEY_ID, VersityGateway
from tests.tiering.store.contract import checksum_of
from tiering.store import s3
from tiering.store.answers import kind_of
from tiering.store.content import InMemory
from tiering.store.errors import (
    AlreadyExists,
    ChecksumRefused,
    Denied,
    Missing,
    Rejected,
    StoreError,
    Throttled,
    Transient,
    Unavailable,
    Unsupported,
)
from tiering.store.interface import ObjectStore
from tiering.store.s3 import S3Store, S3StoreSettings

# Every request that the adapter may make. None of them deletes a version, a bucket or a setting.
ALLOWED = {
    "abort_multipart_upload",
    "complete_multipart_upload",
    "copy_object",
    "create_multipart_upload",
    "delete_object",
    "get_bucket_versioning",
    "get_object",
    "get_object_legal_hold",
    "head_object",
    "list_multipart_uploads",
    "list_object_versions",
    "list_objects_v2",
    "put_object",
    "put_object_legal_hold",
    "upload_part",
    "upload_part_copy",
}
CREATE_AN_OBJECT = {"put_object", "complete_multipart_upload", "copy_object"}


def _requests() -> list[tuple[str, dict[str | None, str]]]:
    """Each call on boto3's client in the adapter's source: its name, its keywords and their source."""
    calls = [node for node in ast.walk(ast.parse(inspect.getsource(s3))) if isinstance(node, ast.Call)]
    return [
        (call.func.attr, {word.arg: ast.unparse(word.value) for word in call.keywords})
        for call in calls
        if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "self._client"
    ]


def test_only_harmless_requests_are_made() -> None:
    """The adapter's source calls nothing else, and the client is used in no other way."""
    uses = inspect.getsource(s3).count("self._client")

    assert {name for name, _ in _requests()} == ALLOWED
    assert uses == len(_requests()) + 1  # where it is made


def test_no_delete_names_a_version() -> None:
    """A delete without a version puts a marker; with one it would be for ever."""
    [words] = [words for name, words in _requests() if name == "delete_object"]

    assert set(words) == {"Bucket", "Key"}


def test_whatever_creates_an_object_asks_for_its_absence() -> None:
    """`If-None-Match: *` stands on every such request, and a checksum of the whole object."""
    creating = [(name, words) for name, words in _requests() if name in CREATE_AN_OBJECT]

    assert {name for name, _ in creating} == CREATE_AN_OBJECT
    assert all(words["IfNoneMatch"] == "ABSENT" for _, words in creating)
    checked = {"put_object": "ChecksumCRC64NVME", "complete_multipart_upload": "ChecksumCRC64NVME"}
    assert all(checked.get(name, "ChecksumAlgorithm") in words for name, words in creating)


def test_the_port_has_no_way_to_delete_a_version() -> None:
    """Nor to overwrite: it is not a matter of not being asked to."""
    methods = {name for name in vars(ObjectStore) if not name.startswith("_")}

    assert {name for name in methods if "delete" in name or "remove" in name} == {"mark_deleted"}
    assert "version_id" not in inspect.signature(ObjectStore.mark_deleted).parameters


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("PreconditionFailed", 412, AlreadyExists),
        ("412", 412, AlreadyExists),
        ("ConditionalRequestConflict", 409, Transient),
        ("BadDigest", 400, ChecksumRefused),
        ("SlowDown", 503, Throttled),
        ("ServiceUnavailable", 503, Transient),
        ("InternalError", 500, Transient),
        ("", 502, Transient),
        ("RequestTimeout", 400, Transient),
        ("TooManyRequests", 429, Throttled),
        ("AccessDenied", 403, Denied),
        ("403", 403, Denied),
        ("ExpiredToken", 400, Denied),
        ("NoSuchKey", 404, Missing),
        ("NoSuchUpload", 404, Missing),
        ("404", 404, Missing),
        ("NotImplemented", 501, Unsupported),
        ("InvalidRequest", 400, Rejected),
        ("PermanentRedirect", 301, Rejected),
        ("SomethingNew", 418, Rejected),
    ],
)
def test_a_refusal_is_told_by_code_then_status(code: str, status: int, kind: type[StoreError]) -> None:
    """Known codes first, then what HTTP says; the rest is ours to correct, not to repeat."""
    assert kind_of(code, status) is kind


def _open(gateway: VersityGateway, bucket: str, **other: Any) -> S3Store:
    settings = S3StoreSettings(bucket=bucket, endpoint_url=gateway.endpoint_url, region="us-east-1")
    return S3Store(settings, boto3.Session(**other) if other else gateway.session())


def test_wrong_credentials_are_denied(versitygw: VersityGateway) -> None:
    """Not transient, not missing: denied, with what the store said."""
    wrong = {"aws_access_key_id": ACCESS_KEY_ID, "aws_secret_access_key": "not the secret"}
    store = _open(versitygw, versitygw.new_bucket(), **wrong)

    with pytest.raises(Denied, match=r"put of 'a' in bucket .* is not allowed: 403"):
        store.put_new("a", InMemory(b"x"), checksum_of(b"x"))


def test_no_credentials_at_all_are_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """boto3's chain that finds nothing is no traceback."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    settings = S3StoreSettings(bucket="b", endpoint_url="http://127.0.0.1:9", region="us-east-1")

    with pytest.raises(Denied, match="Unable to locate credentials"):
        S3Store(settings).head("a")


def test_a_bucket_that_is_not_there_is_missing(versitygw: VersityGateway) -> None:
    """Said for a write as for a listing."""
    store = _open(versitygw, "no-such-bucket")

    with pytest.raises(Missing):
        store.put_new("a", InMemory(b"x"), checksum_of(b"x"))
    with pytest.raises(Missing):
        store.keys_page("", None)


def test_nobody_there_is_unavailable(versitygw: VersityGateway) -> None:
    """A refused connection."""
    settings = S3StoreSettings(bucket="b", endpoint_url="http://127.0.0.1:9", region="us-east-1")

    with pytest.raises(Unavailable):
        S3Store(settings, versitygw.session()).keeps_versions()


def test_the_payload_is_not_hashed_for_the_signature(versitygw: VersityGateway) -> None:
    """The CRC-64 in the signed headers is checked by the store; SHA-256 would cost more than all the rest."""
    store = _open(versitygw, versitygw.new_bucket())
    seen: list[str] = []
    client = store._client  # the one way to see what goes over the wire
    client.meta.events.register(
        "before-send.s3.PutObject",
        lambda request, **_: seen.append(_text(request.headers["X-Amz-Content-SHA256"])),
    )

    store.put_new("a", InMemory(b"content"), checksum_of(b"content"))

    assert seen == ["UNSIGNED-PAYLOAD"]


def _text(header: str | bytes) -> str:
    return header.decode() if isinstance(header, bytes) else header
