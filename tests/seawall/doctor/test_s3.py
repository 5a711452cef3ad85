"""What the doctor says of the bucket, against a real S3 protocol and against stores that refuse."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from seawall.doctor import s3
from seawall.doctor.finding import Finding, Status
from seawall.local.bucket import LocalBucket
from seawall.settings import S3Settings

SUBJECTS = ["s3 credentials", "s3 bucket", "s3 versioning", "s3 object lock"]


@pytest.fixture(autouse=True)
def _own_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys in the environment, and nothing of this machine's own configuration."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tide")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "table")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def _examined(bucket: str, endpoint_url: str) -> dict[str, Finding]:
    settings = S3Settings(bucket=bucket, endpoint_url=endpoint_url)
    return {finding.subject: finding for finding in s3.examine(settings)}


def _statuses(findings: dict[str, Finding]) -> list[Status]:
    return [findings[subject].status for subject in SUBJECTS]


@contextmanager
def _store_that_answers(status: int, headers: dict[str, str]) -> Iterator[str]:
    """A store that answers every request alike."""

    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:  # the name that http.server asks for
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_unset_bucket_is_skipped_and_said() -> None:
    """Not configured is no failure, and it says what to set."""
    (finding,) = s3.examine(S3Settings())

    assert finding.status is Status.SKIPPED
    assert "s3.bucket" in finding.detail


def test_versioned_and_locked_bucket_is_fine(bucket: LocalBucket) -> None:
    """A bucket as Seawall wants it passes every look."""
    assert _statuses(_examined(bucket.name, bucket.address.endpoint_url)) == [Status.OK] * 4


def test_bucket_without_versions_fails(bucket: LocalBucket) -> None:
    """Without versions nothing deleted comes back, so it is a failure; without object lock, a warning."""
    bucket.client().create_bucket(Bucket="doctor-plain")

    findings = _examined("doctor-plain", bucket.address.endpoint_url)

    assert _statuses(findings) == [Status.OK, Status.OK, Status.FAIL, Status.WARN]
    assert "put-bucket-versioning --bucket doctor-plain" in (findings["s3 versioning"].remedy or "")


def test_suspended_versions_fail(bucket: LocalBucket) -> None:
    """A bucket that once had versions is no safer than one that never had."""
    client = bucket.client()
    client.create_bucket(Bucket="doctor-suspended")
    client.put_bucket_versioning(Bucket="doctor-suspended", VersioningConfiguration={"Status": "Suspended"})

    findings = _examined("doctor-suspended", bucket.address.endpoint_url)

    assert findings["s3 versioning"].status is Status.FAIL
    assert findings["s3 versioning"].detail.startswith("suspended")


def test_missing_bucket_fails_and_the_rest_is_unknown(bucket: LocalBucket) -> None:
    """What could not be looked at for want of a bucket is not called fine."""
    findings = _examined("doctor-nowhere", bucket.address.endpoint_url)

    assert _statuses(findings) == [Status.OK, Status.FAIL, Status.UNKNOWN, Status.UNKNOWN]
    assert "there is no bucket doctor-nowhere" in findings["s3 bucket"].detail


def test_denied_access_is_told_from_a_missing_bucket() -> None:
    """403 speaks of the credentials."""
    with _store_that_answers(403, {}) as endpoint_url:
        findings = _examined("archive", endpoint_url)

    assert "denies these credentials" in findings["s3 bucket"].detail


def test_bucket_of_another_region_names_it() -> None:
    """A redirect says which region to set."""
    with _store_that_answers(301, {"x-amz-bucket-region": "eu-central-1"}) as endpoint_url:
        findings = _examined("archive", endpoint_url)

    assert _statuses(findings)[1] is not Status.OK
    assert "eu-central-1" in findings["s3 bucket"].detail


def test_unreachable_store_fails(bucket: LocalBucket) -> None:
    """A store that refuses connections is a failure with its address."""
    with bucket.outage():
        findings = _examined(bucket.name, bucket.address.endpoint_url)

    assert _statuses(findings) == [Status.OK, Status.FAIL, Status.UNKNOWN, Status.UNKNOWN]
    assert bucket.address.endpoint_url in findings["s3 bucket"].detail


def test_no_credentials_fail_and_nothing_else_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without credentials no request is sent, and what was not looked at is unknown."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")

    findings = _examined("archive", "http://127.0.0.1:9")

    assert _statuses(findings) == [Status.FAIL, Status.UNKNOWN, Status.UNKNOWN, Status.UNKNOWN]


def test_unknown_profile_is_a_credentials_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """A profile that is not in the configuration is named."""
    monkeypatch.setenv("AWS_PROFILE", "ebb")

    findings = _examined("archive", "http://127.0.0.1:9")

    assert findings["s3 credentials"].status is Status.FAIL
    assert "ebb" in findings["s3 credentials"].detail


def test_secret_key_is_in_no_finding(bucket: LocalBucket) -> None:
    """Findings are printed and pasted into tickets."""
    findings = _examined(bucket.name, bucket.address.endpoint_url)

    assert "table" not in repr(findings)
