"""Does a request's body have the checksum that the request states? Pure.

S3 refuses a PUT whose body does not match its stated checksum (BadDigest); moto takes the client's word for
it. The embedded server has to refuse too, or nothing on it could show that a torn upload is noticed.

Where a checksum is stated:
    Content-MD5, x-amz-checksum-<algorithm>     in a header
    x-amz-checksum-<algorithm>                  after the body, when Content-Encoding is aws-chunked:
        (hex size [;chunk-signature=...] CRLF bytes CRLF)*  0 [...] CRLF  (name:value CRLF)*  CRLF
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Mapping

from awscrt import checksums

from tiering.log.crc import crc32c

CHECKSUM_PREFIX = "x-amz-checksum-"
CONTENT_MD5 = "content-md5"


def _big_endian(value: int, size_bytes: int) -> bytes:
    return value.to_bytes(size_bytes, "big")


DIGESTS: Mapping[str, Callable[[bytes], bytes]] = {
    CONTENT_MD5: lambda body: hashlib.md5(body, usedforsecurity=False).digest(),
    f"{CHECKSUM_PREFIX}sha1": lambda body: hashlib.sha1(body, usedforsecurity=False).digest(),
    f"{CHECKSUM_PREFIX}sha256": lambda body: hashlib.sha256(body).digest(),
    f"{CHECKSUM_PREFIX}crc32": lambda body: _big_endian(zlib.crc32(body), 4),
    f"{CHECKSUM_PREFIX}crc32c": lambda body: _big_endian(crc32c(body), 4),
    f"{CHECKSUM_PREFIX}crc64nvme": lambda body: _big_endian(checksums.crc64nvme(body), 8),
}


class MalformedBody(ValueError):
    """The body is not the chunks that its encoding promises."""


def wrong_checksum(headers: Mapping[str, str], body: bytes) -> str | None:
    """The name of a stated checksum that the body does not have; `headers` have lower-case names."""
    stated = {name: headers[name] for name in DIGESTS if name in headers}
    if "aws-chunked" in headers.get("content-encoding", ""):
        body, trailers = decode_chunks(body)
        stated |= {name: value for name, value in trailers.items() if name in DIGESTS}
    for name, value in stated.items():
        if base64.b64encode(DIGESTS[name](body)).decode() != value:
            return name
    return None


def decode_chunks(body: bytes) -> tuple[bytes, dict[str, str]]:
    """The content of an aws-chunked body, and the fields that follow it."""
    chunks: list[bytes] = []
    position = 0
    while True:
        line, position = _line(body, position)
        size_bytes = _hex(line.partition(b";")[0])
        if size_bytes == 0:
            return b"".join(chunks), _trailers(body, position)
        chunk = body[position : position + size_bytes]
        position += size_bytes
        if len(chunk) < size_bytes or body[position : position + 2] != b"\r\n":
            raise MalformedBody(f"a chunk of {size_bytes} bytes that does not end there")
        chunks.append(chunk)
        position += 2


def _trailers(body: bytes, position: int) -> dict[str, str]:
    trailers = {}
    while position < len(body):
        line, position = _line(body, position)
        if line:
            name, _, value = line.decode("latin-1").partition(":")
            trailers[name.strip().lower()] = value.strip()
    return trailers


def _line(body: bytes, position: int) -> tuple[bytes, int]:
    end = body.find(b"\r\n", position)
    if end < 0:
        raise MalformedBody(f"no line ends after byte {position}")
    return body[position:end], end + 2


def _hex(digits: bytes) -> int:
    try:
        return int(digits, 16)
    except ValueError as error:
        raise MalformedBody(f"not a chunk size: {digits!r}") from error
