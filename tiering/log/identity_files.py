r"""The text files that say whose files these are: `partition.metadata` and `meta.properties`.

    partition.metadata (one a partition)      meta.properties (one a log dir), Java properties
    version: 0                                #Thu Jan 01 00:00:00 UTC 1970
    topic_id: CgkTzsXgRlOwPTRJHnL2yg          cluster.id=MkU3OEVBNTcwNTJENDM2Qk
                                              directory.id=3cVtEW_RTm2TSqxDBnRsEA     (KIP-858)
                                              node.id=1           (version 0: broker.id, if any)
                                              version=1           (absent: version 0)

Java properties: ISO 8859-1; `#` and `!` start a comment; `=`, `:` or blanks end a key; a backslash at the
end of a line carries it on, `\uXXXX` is a character, any other escaped character stands for itself.

Refuses: missing, doubled or unparsable values. Keys that Kafka does not have are kept aside, as Kafka
ignores them.

Invariant: what is returned names one cluster, one node, one directory, one topic; an error names its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType

from tiering.log.checkpoints import INT32_MAX, Line, read_lines, read_number
from tiering.log.wire import ZERO_UUID, Buffer, Uuid, parse_uuid

PARTITION_METADATA = "partition.metadata"
META_PROPERTIES = "meta.properties"

_KEY_END = re.compile(r"(?<!\\)(?:\\\\)*([=: \t\f])")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)
_NAMED_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetaProperties:
    """Whose log directory this is. Version 0 files may lack the cluster and the node."""

    version: int
    cluster_id: str | None
    node_id: int | None
    directory_id: Uuid | None
    unrecognised: Mapping[str, str]


def read_partition_metadata(buffer: Buffer) -> Uuid:
    """The topic id that a partition directory belongs to."""
    names = ("version", "topic_id")
    lines = list(islice(read_lines(buffer, PARTITION_METADATA, must_end=False), len(names) + 1))
    if len(lines) < len(names):
        raise Line(len(lines) + 1, len(buffer), "").refuse(
            PARTITION_METADATA, f"is missing: it should be {names[len(lines)]!r}"
        )
    if len(lines) > len(names):
        raise lines[-1].refuse(PARTITION_METADATA, "is one line too many")
    values = []
    for line, name in zip(lines, names, strict=True):
        key, _, value = line.text.partition(": ")
        if key != name:
            raise line.refuse(PARTITION_METADATA, f"is {line.text[:80]!r}, not {name!r}")
        values.append(value)
    if values[0] != "0":
        raise lines[0].refuse(PARTITION_METADATA, f"has version {values[0][:80]!r}, and only 0 is understood")
    topic_id = parse_uuid(values[1])
    if topic_id is None or topic_id == ZERO_UUID:
        raise lines[1].refuse(PARTITION_METADATA, f"has {values[1][:80]!r} for its topic id")
    return topic_id


def read_meta_properties(buffer: Buffer) -> MetaProperties:
    """A log directory's `meta.properties`, version 0 or 1."""
    entries = _read_properties(buffer, META_PROPERTIES)
    end = Line(bytes(buffer).count(b"\n") + 1, len(buffer), "")
    version = _number(entries, "version", 1) or 0
    node_key = "node.id" if version else "broker.id"
    node_id = _number(entries, node_key, INT32_MAX)
    cluster = entries.get("cluster.id")
    for key, value in ((node_key, node_id), ("cluster.id", cluster)):
        if version and value is None:
            raise end.refuse(META_PROPERTIES, f"should give {key}, as no line does")
    directory = entries.get("directory.id")
    directory_id = parse_uuid(directory[1]) if directory else None
    if directory and directory_id is None:
        raise directory[0].refuse(META_PROPERTIES, f"has {directory[1][:80]!r} for its directory id")
    known = {"version", "cluster.id", "directory.id", node_key}
    others = {key: value for key, (_, value) in entries.items() if key not in known}
    return MetaProperties(
        version=version,
        cluster_id=cluster[1] if cluster else None,
        node_id=node_id,
        directory_id=directory_id,
        unrecognised=MappingProxyType(others),
    )


def _number(entries: Mapping[str, tuple[Line, str]], key: str, maximum: int) -> int | None:
    if key not in entries:
        return None
    line, text = entries[key]
    return read_number(line, META_PROPERTIES, key, text, maximum)


def _read_properties(buffer: Buffer, what: str) -> dict[str, tuple[Line, str]]:
    entries: dict[str, tuple[Line, str]] = {}
    for line in _logical_lines(read_lines(buffer, what, encoding="iso-8859-1", must_end=False)):
        key_end = _KEY_END.search(line.text)
        raw_key = line.text[: key_end.start(1)] if key_end else line.text
        rest = line.text[len(raw_key) :].lstrip(_BLANKS)
        key = _unescape(line, what, raw_key)
        if key in entries:
            raise line.refuse(what, f"sets {key[:80]!r} a second time")
        entries[key] = (line, _unescape(line, what, rest[1:].lstrip(_BLANKS) if rest[:1] in "=:" else rest))
    return entries


def _logical_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Comments and blank lines dropped, continued lines joined."""
    parts: list[str] = []
    first: Line | None = None
    for line in lines:
        text = line.text.rstrip("\r").lstrip(_BLANKS)
        if first is None and (not text or text[0] in "#!"):
            continue
        first = first or line
        goes_on = (len(text) - len(text.rstrip("\\"))) % 2 == 1
        parts.append(text[:-1] if goes_on else text)
        if not goes_on:
            yield first._replace(text="".join(parts))
            first, parts = None, []
    if first is not None:
        yield first._replace(text="".join(parts))


def _unescape(line: Line, what: str, text: str) -> str:
    def character(match: re.Match[str]) -> str:
        escaped = match[1]
        if escaped == "u":
            raise line.refuse(what, "has a \\u that is not followed by four hexadecimal digits")
        return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _NAMED_ESCAPES.get(escaped, escaped)

    return _ESCAPE.sub(character, text)
