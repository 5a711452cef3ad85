"""Frames: a length, a header, a body.

    request   int16 key, int16 version, int32 correlation id, nullable string client id; flexible: tags
    answer    int32 correlation id; flexible: tags (never of ApiVersions)

Each behind an int32 with its length. Owns headers alone; bodies are `forms`'.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from tiering.log import wire
from tiering.log.errors import Malformed
from tiering.log.wire import Buffer
from tiering.serve.protocol.apis import APIS, GROUP_IN_ARRAY, Api
from tiering.serve.protocol.forms import Out, read_message, write_message, write_uvarint

LENGTH = struct.Struct(">i")
_HEAD = struct.Struct(">hhi")
CORRELATION_AT = 4  # in a request, behind its length


class RequestHead(NamedTuple):
    """A request's header, and where its body begins."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    body_at: int


def read_head(frame: Buffer) -> RequestHead:
    """Of any request, known here or not: one that is not known has no tags that could be told."""
    if len(frame) < _HEAD.size:
        raise Malformed(position=0, what="request", why=f"has {len(frame)} bytes")
    key, version, correlation_id = _HEAD.unpack_from(frame, 0)
    client_id, position = wire.read_nullable_string(frame, _HEAD.size)
    api = APIS.get(key)
    if api is not None and api.is_flexible(version) and version in api.versions:
        _, position = wire.read_tagged_fields(frame, position)
    return RequestHead(key, version, correlation_id, client_id, position)


def request_frame(api: Api, version: int, correlation_id: int, client_id: str, request: Any) -> bytes:
    """A whole request, its length before it."""
    out = Out()
    encoded = client_id.encode()
    out.extend(_HEAD.pack(api.key, version, correlation_id))
    out.extend(struct.pack(">h", len(encoded)) + encoded)
    if api.is_flexible(version):
        write_uvarint(out, 0)
    write_message(out, request, version, api.is_flexible(version))
    return LENGTH.pack(out.size_bytes) + b"".join(out.pieces())


def answer_pieces(api: Api, version: int, correlation_id: int, response: Any) -> list[Buffer]:
    """A whole answer, its length before it; records are not copied."""
    out = Out()
    out.extend(LENGTH.pack(0))  # its place
    out.extend(LENGTH.pack(correlation_id))
    if api.answer_has_tags(version):
        write_uvarint(out, 0)
    write_message(out, response, version, api.is_flexible(version))
    LENGTH.pack_into(out, 0, out.size_bytes - LENGTH.size)
    return out.pieces()


def read_answer(api: Api, version: int, frame: Buffer) -> Any:
    """The answer in a frame; the correlation id was looked at before."""
    position = LENGTH.size
    if api.answer_has_tags(version):
        _, position = wire.read_tagged_fields(frame, position)
    assert api.response is not None
    return read_message(api.response, version, api.is_flexible(version), frame, position)


def with_correlation(frame: Buffer, at: int, correlation_id: int) -> bytearray:
    """The same frame under another correlation id."""
    found = bytearray(frame)
    LENGTH.pack_into(found, at, correlation_id)
    return found


def group_of(head: RequestHead, frame: Buffer) -> str:
    """The group that a forwarded request is about; of several the first."""
    flexible = APIS[head.key].is_flexible(head.version)
    position = head.body_at
    if head.version >= GROUP_IN_ARRAY.get(head.key, 32767):
        count, position = wire.read_uvarint(frame, position) if flexible else wire.read_int32(frame, position)
        if count < (2 if flexible else 1):
            raise Malformed(position=position, what="groups", why="there are none")
    read = wire.read_compact_string if flexible else wire.read_string
    return read(frame, position)[0]
