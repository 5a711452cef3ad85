"""The object store over boto3: S3, and what speaks its protocol.

Owns how each method of the port becomes one request, and the translation of every error of the SDK. botocore
retries nothing here: an attempt is an attempt, so that `retry`'s deadlines hold. A call that hangs ends by
the socket's timeouts; bodies come in pieces, each of which may raise.

Refuses: to send anything that overwrites (`If-None-Match: *` on whatever creates an object), to delete where
versioning is off, and to name a version in a delete (tests/tiering/store/test_s3.py reads this file for it).

Payloads are not hashed a second time for the signature: the signed headers hold their CRC-64, which the
store checks. Credentials are found by boto3's own chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Literal, cast

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
    TokenRetrievalError,
)
from botocore.exceptions import ConnectionError as NotConnected
from botocore.parsers import ResponseParserError
from botocore.response import StreamingBody

from rules.identity import ObjectRef
from tiering.store.answers import kind_of
from tiering.store.body import FileBody, filled
from tiering.store.errors import (
    Denied,
    Missing,
    NotVersioned,
    Rejected,
    StoredDiffers,
    StoreError,
    Unavailable,
    Unsupported,
)
from tiering.store.interface import (
    CHECKSUM_ALGORITHM,
    Content,
    ListedKey,
    ListedVersion,
    Page,
    PageToken,
    PendingUpload,
    SentPart,
    Stored,
)

if TYPE_CHECKING:
    from types_boto3_s3.client import S3Client

ABSENT = "*"  # If-None-Match: *, the condition that nothing is there
READ_PIECE_BYTES = 2 * 1024 * 1024
_NO_ANSWER = (NotConnected, HTTPClientError, IncompleteReadError, ResponseParserError)
_NO_CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    TokenRetrievalError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3StoreSettings:
    """Which bucket, and how long to wait for an answer."""

    bucket: str
    endpoint_url: str | None = None
    region: str | None = None
    addressing_style: Literal["auto", "path", "virtual"] = "auto"
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 30.0
    connections_max: int = 32
    page_entries: int = 1000
    # Whether `If-None-Match: *` holds on CopyObject. AWS does it so; a store that does not know the condition
    # there says 200 and covers what is live (docs/decisions/0005-restore-by-parts.md).
    copies_where_absent: bool = False


class S3Store:
    """One bucket. Safe to use from many threads, as boto3's clients are."""

    def __init__(self, settings: S3StoreSettings, session: boto3.Session | None = None) -> None:
        self._settings = settings
        self._client: S3Client = (session or boto3.Session()).client(
            "s3",
            region_name=settings.region,
            endpoint_url=settings.endpoint_url,
            config=_config(settings),
        )

    @property
    def bucket(self) -> str:
        return self._settings.bucket

    def put_new(self, key: str, content: Content, checksum: str) -> str | None:
        with self._asking("put", key), FileBody(content) as body:
            answer = self._client.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=body,
                IfNoneMatch=ABSENT,
                ChecksumAlgorithm=CHECKSUM_ALGORITHM,
                ChecksumCRC64NVME=checksum,
            )
        return answer.get("VersionId")

    def start_parts(self, key: str) -> str:
        with self._asking("start of parts", key):
            answer = self._client.create_multipart_upload(
                Bucket=self.bucket, Key=key, ChecksumAlgorithm=CHECKSUM_ALGORITHM, ChecksumType="FULL_OBJECT"
            )
        return answer["UploadId"]

    def put_part(self, key: str, upload_id: str, number: int, content: Content, checksum: str) -> SentPart:
        with self._asking(f"part {number}", key), FileBody(content) as body:
            answer = self._client.upload_part(
                Bucket=self.bucket,
                Key=key,
                UploadId=upload_id,
                PartNumber=number,
                Body=body,
                ChecksumAlgorithm=CHECKSUM_ALGORITHM,
                ChecksumCRC64NVME=checksum,
            )
        return SentPart(number=number, etag=answer["ETag"], checksum=checksum)

    def finish_parts(
        self, key: str, upload_id: str, parts: tuple[SentPart, ...], *, size_bytes: int, checksum: str
    ) -> str | None:
        with self._asking("finish of parts", key):
            answer = self._client.complete_multipart_upload(
                Bucket=self.bucket,
                Key=key,
                UploadId=upload_id,
                MultipartUpload={
                    "Parts": [
                        {"PartNumber": part.number, "ETag": part.etag, "ChecksumCRC64NVME": part.checksum}
                        for part in parts
                    ]
                },
                IfNoneMatch=ABSENT,
                MpuObjectSize=size_bytes,
                ChecksumType="FULL_OBJECT",
                ChecksumCRC64NVME=checksum,
            )
        return answer.get("VersionId")

    def abort_parts(self, key: str, upload_id: str) -> None:
        try:
            with self._asking("abort of parts", key):
                self._client.abort_multipart_upload(Bucket=self.bucket, Key=key, UploadId=upload_id)
        except Missing:
            return

    def head(self, key: str, version_id: str | None = None) -> Stored:
        with self._asking("head", key):
            answer = self._client.head_object(
                Bucket=self.bucket, Key=key, ChecksumMode="ENABLED", **_version(version_id)
            )
        return Stored(
            size_bytes=answer["ContentLength"],
            checksum=answer.get("ChecksumCRC64NVME"),
            version_id=self._versioned("head", key, answer.get("VersionId")),
        )

    def read_range(self, key: str, version_id: str, start: int, end: int) -> Iterator[bytes]:
        with self._asking("read", key), closing(self._answer(key, version_id, start, end)) as body:
            yield from body.iter_chunks(READ_PIECE_BYTES)

    def pour(self, key: str, version_id: str, start: int, end: int, into: memoryview) -> Iterator[memoryview]:
        with self._asking("read", key), self._answer(key, version_id, start, end) as answer:
            try:
                for count in filled(answer, into):
                    yield into[:count]
            except (OSError, HTTPException) as broken:
                why = f"the answer broke off: {broken}"
                raise Unavailable(bucket=self.bucket, key=key, operation="read", why=why) from broken

    def keys_page(self, prefix: str, token: PageToken | None) -> Page[ListedKey]:
        more: dict[str, Any] = {"ContinuationToken": token[0]} if token else {}
        with self._asking("list keys", prefix):
            answer = self._client.list_objects_v2(
                Bucket=self.bucket, Prefix=prefix, MaxKeys=self._settings.page_entries, **more
            )
        entries = tuple(
            ListedKey(key=found["Key"], size_bytes=found["Size"], modified_ms=_ms(found["LastModified"]))
            for found in answer.get("Contents", ())
        )
        return Page(entries=entries, next=_next(answer, "NextContinuationToken"))

    def versions_page(self, prefix: str, token: PageToken | None) -> Page[ListedVersion]:
        more: dict[str, Any] = {"KeyMarker": token[0], "VersionIdMarker": token[1]} if token else {}
        with self._asking("list versions", prefix):
            answer = self._client.list_object_versions(
                Bucket=self.bucket, Prefix=prefix, MaxKeys=self._settings.page_entries, **more
            )
        entries = [_listed(found, is_marker=False) for found in answer.get("Versions", ())]
        entries += [_listed(found, is_marker=True) for found in answer.get("DeleteMarkers", ())]
        # The two lists are each in order; merged, a key's latest comes first and the rest by time.
        entries.sort(key=lambda entry: (entry.key.encode(), not entry.is_latest, -entry.modified_ms))
        return Page(entries=tuple(entries), next=_next(answer, "NextKeyMarker", "NextVersionIdMarker"))

    def uploads_page(self, prefix: str, token: PageToken | None) -> Page[PendingUpload]:
        more: dict[str, Any] = {"KeyMarker": token[0], "UploadIdMarker": token[1]} if token else {}
        with self._asking("list uploads", prefix):
            answer = self._client.list_multipart_uploads(
                Bucket=self.bucket, Prefix=prefix, MaxUploads=self._settings.page_entries, **more
            )
        entries = tuple(
            PendingUpload(key=found["Key"], upload_id=found["UploadId"], initiated_ms=_ms(found["Initiated"]))
            for found in answer.get("Uploads", ())
        )
        return Page(entries=entries, next=_next(answer, "NextKeyMarker", "NextUploadIdMarker"))

    def mark_deleted(self, key: str) -> str | None:
        if not self.keeps_versions():
            why = "versioning is not enabled; nothing was deleted"
            raise NotVersioned(bucket=self.bucket, key=key, operation="delete marker", why=why)
        with self._asking("delete marker", key):
            answer = self._client.delete_object(Bucket=self.bucket, Key=key)
        return answer.get("VersionId") if answer.get("DeleteMarker") else None

    def copy_version(self, source: ObjectRef) -> str | None:
        """One request where the store is known to refuse a copy onto a live object, else by parts."""
        version_id = self._versioned("copy of a version", source.key, source.version_id)
        if self._settings.copies_where_absent:
            return self._copy_whole(source, version_id)
        self._copy_in_parts(source, version_id)
        return None

    def _copy_whole(self, source: ObjectRef, version_id: str) -> str | None:
        """The store says the checksum of what it has written, and not before; one that differs is marked."""
        with self._asking("copy of a version", source.key):
            answer = self._client.copy_object(
                Bucket=self.bucket,
                Key=source.key,
                CopySource={"Bucket": self.bucket, "Key": source.key, "VersionId": version_id},
                IfNoneMatch=ABSENT,
                ChecksumAlgorithm=CHECKSUM_ALGORITHM,
            )
        told = answer["CopyObjectResult"].get("ChecksumCRC64NVME")
        if told is not None and told != source.checksum:
            self.mark_deleted(source.key)
            why = f"the copy has checksum {told}, and {source.checksum} is on record"
            raise StoredDiffers(bucket=self.bucket, key=source.key, operation="copy of a version", why=why)
        # Without a checksum the answer says too little: whoever asked reads back.
        return answer.get("VersionId") if told is not None else None

    def _copy_in_parts(self, source: ObjectRef, version_id: str) -> None:
        """The condition stands on the finish, where every store at hand honours it; the checksum is compared
        there by most. Whoever asked reads back."""
        upload_id = self.start_parts(source.key)
        try:
            with self._asking("copy of a version", source.key):
                part = self._client.upload_part_copy(
                    Bucket=self.bucket,
                    Key=source.key,
                    UploadId=upload_id,
                    PartNumber=1,
                    CopySource={"Bucket": self.bucket, "Key": source.key, "VersionId": version_id},
                )["CopyPartResult"]
            copied = SentPart(number=1, etag=part["ETag"], checksum=source.checksum)
            self.finish_parts(
                source.key, upload_id, (copied,), size_bytes=source.size_bytes, checksum=source.checksum
            )
        except BaseException:
            self._abort_quietly(source.key, upload_id)
            raise

    def set_hold(self, key: str, version_id: str, *, held: bool) -> None:
        try:
            with self._asking("legal hold", key):
                self._client.put_object_legal_hold(
                    Bucket=self.bucket,
                    Key=key,
                    VersionId=version_id,
                    LegalHold={"Status": "ON" if held else "OFF"},
                )
        except Rejected as error:  # the code is InvalidRequest, which says nothing
            raise Unsupported(
                bucket=error.bucket, key=key, operation=error.operation, why=error.why
            ) from error

    def is_held(self, key: str, version_id: str) -> bool:
        self.head(key, version_id)  # stores answer alike for a version without a hold and for none at all
        try:
            with self._asking("legal hold", key):
                answer = self._client.get_object_legal_hold(Bucket=self.bucket, Key=key, VersionId=version_id)
        except Missing:
            return False
        return answer.get("LegalHold", {}).get("Status") == "ON"

    def keeps_versions(self) -> bool:
        with self._asking("versioning", ""):
            answer = self._client.get_bucket_versioning(Bucket=self.bucket)
        return answer.get("Status") == "Enabled"

    def now_ms(self) -> int:
        with self._asking("clock", ""):
            answer: Any = self._client.get_bucket_versioning(Bucket=self.bucket)
        told = answer["ResponseMetadata"].get("HTTPHeaders", {}).get("date", "")
        try:
            return _ms(parsedate_to_datetime(told))
        except ValueError:
            why = f"the answer's Date is {told!r}"
            raise Unsupported(bucket=self.bucket, key="", operation="clock", why=why) from None

    def _answer(self, key: str, version_id: str, start: int, end: int) -> StreamingBody:
        """The bytes `[start, end)` of a version, on their way; closed before its end, it drops the rest."""
        return self._client.get_object(
            Bucket=self.bucket, Key=key, VersionId=version_id, Range=f"bytes={start}-{end - 1}"
        )["Body"]

    def _abort_quietly(self, key: str, upload_id: str) -> None:
        try:
            self.abort_parts(key, upload_id)
        except StoreError:
            return  # the error that led here matters more; `abort_stale_uploads` finds what is left

    def _versioned(self, operation: str, key: str, version_id: str | None) -> str:
        if version_id is None or version_id == "null":
            why = "the object has no version id"
            raise NotVersioned(bucket=self.bucket, key=key, operation=operation, why=why)
        return version_id

    @contextmanager
    def _asking(self, operation: str, key: str) -> Iterator[None]:
        """Every error of the SDK as one of ours."""
        try:
            yield
        except ClientError as refused:
            error = refused.response.get("Error", {})
            status = refused.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            code, told = error.get("Code", ""), error.get("Message", "")
            kind = kind_of(code, status)
            why = f"{status} {code}: {told}" if told else f"{status} {code}"
            raise kind(bucket=self.bucket, key=key, operation=operation, why=why) from refused
        except _NO_CREDENTIALS as failure:
            raise Denied(bucket=self.bucket, key=key, operation=operation, why=str(failure)) from failure
        except _NO_ANSWER as failure:
            raise Unavailable(bucket=self.bucket, key=key, operation=operation, why=str(failure)) from failure
        except BotoCoreError as failure:
            raise Rejected(bucket=self.bucket, key=key, operation=operation, why=str(failure)) from failure


def _config(settings: S3StoreSettings) -> Config:
    return Config(
        connect_timeout=settings.connect_timeout_s,
        read_timeout=settings.read_timeout_s,
        max_pool_connections=settings.connections_max,
        retries={"total_max_attempts": 1, "mode": "standard"},
        tcp_keepalive=True,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": settings.addressing_style, "payload_signing_enabled": False},
        user_agent_extra="seawall",
    )


def _version(version_id: str | None) -> dict[str, Any]:
    return {} if version_id is None else {"VersionId": version_id}


def _ms(moment: Any) -> int:
    return int(moment.timestamp() * 1000)


def _next(answer: Any, *names: str) -> PageToken | None:
    if not answer.get("IsTruncated"):
        return None
    return tuple(cast(str, answer.get(name, "")) for name in names)


def _listed(found: Any, *, is_marker: bool) -> ListedVersion:
    return ListedVersion(
        key=found["Key"],
        version_id=found["VersionId"],
        is_latest=found["IsLatest"],
        is_delete_marker=is_marker,
        size_bytes=0 if is_marker else found["Size"],
        modified_ms=_ms(found["LastModified"]),
    )
