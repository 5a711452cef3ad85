"""What comes of a segment whose requests are cut, lost, held up or garbled, on a real connection.

Each test ends with a look at the bucket itself, past the proxy: one version with the segment's bytes, or
nothing at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import boto3
import pytest

from seawall.local.bucket import LocalBucket
from tests.cluster.versitygw import VersityGateway
from tests.encode.record_batch import encode_batch
from tests.encode.segment import plain_records, write_segment
from tests.tiering.store.contract import read, walk
from tests.tiering.store.proxy import Fault, FaultyProxy
from tiering.store.errors import Missing, StoreError, Unavailable
from tiering.store.leftovers import abort_stale_uploads
from tiering.store.patient import PatientStore, patient
from tiering.store.retry import Retried, RetryPolicy
from tiering.store.s3 import S3Store, S3StoreSettings
from tiering.store.upload import MIB, UploadedSegment, Uploader, UploadLimits

pytestmark = pytest.mark.slow

POLICY = RetryPolicy(attempts_max=4, attempt_s=20, overall_s=60, soon_s=0.01, later_s=0.01)
LIMITS = UploadLimits(part_bytes=5 * MIB, buffers=3, senders=2)
READ_TIMEOUT_S = 20.0
HASTY_TIMEOUT_S = 1.0  # for the tests in which somebody hangs
RECORD_BYTES = 100_000
FAR_FUTURE_MS = 2**53


class Wire:
    """A store behind a proxy, and the same bucket without it."""

    def __init__(self, endpoint_url: str, bucket: str, session: boto3.Session) -> None:
        self._bucket, self._session = bucket, session
        self.proxy = FaultyProxy(endpoint_url)
        self.direct = self._open(endpoint_url)
        self.retries: list[Retried] = []
        self.store = self.patiently(POLICY)
        self.hasty = self.patiently(POLICY, HASTY_TIMEOUT_S)
        self.prefix = f"faults/{uuid4()}/"
        self.key = f"{self.prefix}segment.log"

    def patiently(self, policy: RetryPolicy, timeout_s: float = READ_TIMEOUT_S) -> PatientStore:
        store = self._open(self.proxy.endpoint_url, timeout_s)
        return patient(store, policy=policy, on_retry=self.retries.append)

    def _open(self, endpoint_url: str, timeout_s: float = READ_TIMEOUT_S) -> S3Store:
        settings = S3StoreSettings(
            bucket=self._bucket,
            endpoint_url=endpoint_url,
            region="us-east-1",
            connect_timeout_s=timeout_s,
            read_timeout_s=timeout_s,
        )
        return S3Store(settings, self._session)

    def upload(self, path: Path, store: PatientStore | None = None) -> UploadedSegment:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            with Uploader(store or self.store, LIMITS) as uploader:
                return uploader.upload_segment(self.key, descriptor, base_offset=0)
        finally:
            os.close(descriptor)

    def assert_holds_only(self, uploaded: UploadedSegment, path: Path) -> None:
        """One version, which is the one we were told of, with the segment's bytes."""
        [version] = walk(self.direct.versions_page, self.prefix)
        assert version.version_id == uploaded.ref.version_id
        assert read(self.direct, uploaded.ref) == path.read_bytes()

    def assert_holds_nothing(self) -> None:
        """No object, and no parts that nobody would ever look for."""
        assert walk(self.direct.versions_page, self.prefix) == []
        assert walk(self.direct.uploads_page, self.prefix) == []


@pytest.fixture(params=["moto", "versitygw"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    if request.param == "moto":
        local: LocalBucket = request.getfixturevalue("bucket")
        at = local.address
        session = boto3.Session(
            aws_access_key_id=at.access_key_id, aws_secret_access_key=at.secret_access_key
        )
        made = Wire(at.endpoint_url, at.bucket, session)
    else:
        gateway: VersityGateway = request.getfixturevalue("versitygw")
        made = Wire(gateway.endpoint_url, gateway.new_bucket(), gateway.session())
    with made.proxy:
        yield made


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment of one request."""
    return write_segment(tmp_path_factory.mktemp("small"), 0, _batches(1))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment of three parts."""
    return write_segment(tmp_path_factory.mktemp("large"), 0, _batches(36))


def _batches(count: int) -> list[bytes]:
    """Of 300 KB each."""
    value = os.urandom(RECORD_BYTES)
    return [encode_batch(plain_records(base, 3, value=value)) for base in range(0, 3 * count, 3)]


def test_a_lost_answer_makes_no_second_object(wire: Wire, small: Path) -> None:
    """A put that was carried out, and whose answer never came, is recognised as ours when it is repeated."""
    wire.proxy.break_next(Fault.LOSE_ANSWER, method="PUT")

    uploaded = wire.upload(small)

    assert wire.proxy.broken == [Fault.LOSE_ANSWER]
    wire.assert_holds_only(uploaded, small)


def test_answers_that_never_come_are_settled_by_looking(wire: Wire, small: Path) -> None:
    """Where every attempt's answer is lost, what is in the store decides."""
    wire.proxy.break_next(Fault.LOSE_ANSWER, method="PUT", count=POLICY.attempts_max)

    uploaded = wire.upload(small)

    assert uploaded.ref.size_bytes == small.stat().st_size
    wire.assert_holds_only(uploaded, small)


@pytest.mark.parametrize(
    ("method", "query"),
    [("PUT", "partNumber=2"), ("POST", "uploadId="), ("HEAD", "")],
    ids=["part", "finish", "read back"],
)
def test_a_lost_answer_of_any_step_makes_one_object(wire: Wire, large: Path, method: str, query: str) -> None:
    """Whichever request of a multipart upload loses its answer, one whole object is there in the end."""
    wire.proxy.break_next(Fault.LOSE_ANSWER, method=method, query=query)

    uploaded = wire.upload(large)

    assert wire.proxy.broken == [Fault.LOSE_ANSWER]
    wire.assert_holds_only(uploaded, large)
    assert walk(wire.direct.uploads_page, wire.prefix) == []


def test_an_upload_nobody_knows_of_is_found_later(wire: Wire, large: Path) -> None:
    """If the answer to the start is lost, its upload id is: the sweep of stale uploads finds and ends it."""
    wire.proxy.break_next(Fault.LOSE_ANSWER, method="POST", query="?uploads")

    uploaded = wire.upload(large)

    wire.assert_holds_only(uploaded, large)
    assert len(walk(wire.direct.uploads_page, wire.prefix)) == 1
    ended = list(abort_stale_uploads(wire.store, wire.prefix, initiated_before_ms=FAR_FUTURE_MS))
    assert [upload.key for upload in ended] == [wire.key]
    assert walk(wire.direct.uploads_page, wire.prefix) == []


@pytest.mark.parametrize("fault", [Fault.CUT, Fault.SLOW_DOWN, Fault.GARBLE])
@pytest.mark.parametrize("query", ["", "partNumber=2"], ids=["whole", "part"])
def test_what_fails_for_now_is_sent_again(
    wire: Wire, small: Path, large: Path, fault: Fault, query: str
) -> None:
    """A connection cut in the body, a request for less, a flipped bit: the next attempt works."""
    path = large if query else small
    wire.proxy.break_next(fault, method="PUT", query=query)

    uploaded = wire.upload(path)

    assert wire.proxy.broken == [fault]
    assert [retried.attempt for retried in wire.retries] == [1]
    wire.assert_holds_only(uploaded, path)


@pytest.mark.parametrize("query", ["", "partNumber=2"], ids=["whole", "part"])
def test_a_hang_is_survived(wire: Wire, small: Path, large: Path, query: str) -> None:
    """A request that nobody answers ends by its own deadline, and is sent again."""
    path = large if query else small
    wire.proxy.break_next(Fault.HANG, method="PUT", query=query)

    uploaded = wire.upload(path, wire.hasty)

    assert wire.proxy.broken == [Fault.HANG]
    assert wire.retries[0].attempt == 1
    assert isinstance(wire.retries[0].error, Unavailable)
    wire.assert_holds_only(uploaded, path)


def test_a_store_that_hangs_is_given_up(wire: Wire, small: Path) -> None:
    """A hang ends by the socket's own deadline, attempt after attempt, with an error that says so."""
    wire.proxy.break_next(Fault.HANG, method="PUT", count=2)
    impatient = wire.patiently(RetryPolicy(attempts_max=2, soon_s=0.01), HASTY_TIMEOUT_S)

    with pytest.raises(Unavailable) as raised:
        wire.upload(small, impatient)

    assert raised.value.attempts == 2
    assert (raised.value.key, raised.value.operation) == (wire.key, "put")
    wire.assert_holds_nothing()


def test_parts_that_cannot_be_sent_are_undone(wire: Wire, large: Path) -> None:
    """When a part fails for good the upload fails, and the parts that had arrived are gone from the store."""
    wire.proxy.break_next(Fault.CUT, method="PUT", query="partNumber=2", count=POLICY.attempts_max)

    with pytest.raises(StoreError):
        wire.upload(large)

    wire.assert_holds_nothing()


def test_a_read_that_is_cut_off_is_asked_for_again(wire: Wire, small: Path) -> None:
    """A range is whole or an error; the answer that is lost is read again."""
    uploaded = wire.upload(small)
    assert uploaded.ref.version_id is not None
    wire.proxy.break_next(Fault.LOSE_ANSWER, method="GET")
    wire.proxy.break_next(Fault.HANG, method="GET")

    found = wire.hasty.read_range(wire.key, uploaded.ref.version_id, 100, 200_000)

    assert found == small.read_bytes()[100:200_000]
    assert [retried.attempt for retried in wire.retries[:2]] == [1, 2]


def test_a_stream_whose_answers_are_lost_goes_on(wire: Wire, large: Path) -> None:
    """Lost before its first byte, and hung: every byte comes, once and in order."""
    uploaded = wire.upload(large)
    assert uploaded.ref.version_id is not None
    wire.proxy.break_next(Fault.LOSE_ANSWER, method="GET")
    wire.proxy.break_next(Fault.HANG, method="GET")

    coming = wire.hasty.stream(wire.key, uploaded.ref.version_id, 0, uploaded.ref.size_bytes)

    assert b"".join(bytes(piece) for piece in coming) == large.read_bytes()
    assert len(wire.retries) >= 2


def test_a_store_that_is_gone_says_so(wire: Wire, small: Path) -> None:
    """A refused connection is Unavailable, not a traceback of the SDK."""
    wire.proxy.close()

    with pytest.raises(Unavailable):
        wire.upload(small, wire.patiently(RetryPolicy(attempts_max=2, soon_s=0.01)))

    with pytest.raises(Missing):
        wire.direct.head(wire.key)
