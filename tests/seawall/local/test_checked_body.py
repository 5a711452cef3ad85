"""Stated checksums against bodies, plain and in chunks."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.local.checked_body import DIGESTS, MalformedBody, decode_chunks, wrong_checksum

# From the standards' own test vectors: the digests of "123456789".
KNOWN = {
    "x-amz-checksum-crc32": "cbf43926",
    "x-amz-checksum-crc32c": "e3069283",
    "x-amz-checksum-crc64nvme": "ae8b14860a799888",
    "x-amz-checksum-sha1": hashlib.sha1(b"123456789").hexdigest(),
    "x-amz-checksum-sha256": hashlib.sha256(b"123456789").hexdigest(),
    "content-md5": "25f9e794323b453885f5181f1b624d0b",
}


def in_chunks(body: bytes, size_bytes: int, trailer: str = "") -> bytes:
    parts = [body[at : at + size_bytes] for at in range(0, len(body), size_bytes)]
    encoded = b"".join(b"%x;chunk-signature=00\r\n%s\r\n" % (len(part), part) for part in parts)
    return encoded + b"0;chunk-signature=00\r\n" + trailer.encode() + b"\r\n"


@pytest.mark.parametrize("name", sorted(DIGESTS))
def test_each_algorithm_gives_the_known_digest(name: str) -> None:
    """A right checksum is accepted, the same checksum over other bytes is named."""
    stated = {name: base64.b64encode(bytes.fromhex(KNOWN[name])).decode()}

    assert wrong_checksum(stated, b"123456789") is None
    assert wrong_checksum(stated, b"123456780") == name


def test_a_body_without_a_stated_checksum_is_not_judged() -> None:
    """Nothing stated, nothing wrong."""
    assert wrong_checksum({"content-type": "text/plain"}, b"anything") is None


@given(body=st.binary(max_size=300), size_bytes=st.integers(1, 100))
def test_chunks_decode_to_the_body(body: bytes, size_bytes: int) -> None:
    """Whatever the sizes of the chunks, and with the fields that follow them."""
    encoded = in_chunks(body, size_bytes, "x-amz-checksum-crc32:AAAA\r\n")

    assert decode_chunks(encoded) == (body, {"x-amz-checksum-crc32": "AAAA"})


def test_a_checksum_after_the_chunks_is_checked() -> None:
    """The trailing checksum is over the content, not over its encoding."""
    right = base64.b64encode(bytes.fromhex(KNOWN["x-amz-checksum-crc32c"])).decode()
    headers = {"content-encoding": "aws-chunked"}

    good = in_chunks(b"123456789", 4, f"x-amz-checksum-crc32c:{right}\r\n")
    bad = in_chunks(b"123456780", 4, f"x-amz-checksum-crc32c:{right}\r\n")

    assert wrong_checksum(headers, good) is None
    assert wrong_checksum(headers, bad) == "x-amz-checksum-crc32c"


@given(body=st.binary(max_size=60), cut=st.integers(0, 80))
def test_a_body_cut_short_is_malformed_or_short(body: bytes, cut: int) -> None:
    """No cut makes the decoder loop, or return more than was sent."""
    whole = in_chunks(body, 16)
    try:
        content, _ = decode_chunks(whole[:cut])
    except MalformedBody:
        return
    assert body.startswith(content)
