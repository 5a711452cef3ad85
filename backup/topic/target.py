"""What a topic must be like to take a replay, and with what one is made (pure).

    cleanup.policy                   delete alone: a cleaner would take records that the source has
    message.timestamp.type           CreateTime: the broker would set its own times
    message.timestamp.before.max.ms  at least as long ago as the range's times; a new topic takes any
    retention.ms, retention.bytes    must not take what is replayed; a new topic keeps everything

Invariant: a topic without a complaint here keeps what it is sent, times included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

UNLIMITED = "-1"
ANY_MS = str(2**63 - 1)

# A new topic keeps all: its records are old, and most retentions would take them.
NEW_TOPIC: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "retention.ms": UNLIMITED,
    "retention.bytes": UNLIMITED,
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": ANY_MS,
    "message.timestamp.after.max.ms": ANY_MS,
}
PROGRESS_TOPIC_SETTINGS: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "retention.ms": UNLIMITED,
    "retention.bytes": UNLIMITED,
}


def complaints(
    entries: Mapping[str, str | None], *, oldest_ms: int, size_bytes: int, now_ms: int
) -> Iterator[str]:
    """Why a topic with these settings would not keep a range of that age and size. -1: it has no times."""
    if "compact" in (entries.get("cleanup.policy") or ""):
        yield "its cleanup.policy has compact: the cleaner would take records away"
    if entries.get("message.timestamp.type") != "CreateTime":
        yield "its message.timestamp.type is not CreateTime: the broker would set its own times"
    before_ms = _number(entries, "message.timestamp.before.max.ms")
    if oldest_ms >= 0 and before_ms is not None and now_ms - oldest_ms > before_ms:
        yield f"its message.timestamp.before.max.ms is {before_ms}, and the range has older times"
    kept_ms = _number(entries, "retention.ms")
    if oldest_ms >= 0 and kept_ms is not None and 0 <= kept_ms < now_ms - oldest_ms:
        yield f"its retention.ms is {kept_ms}: what is replayed would be deleted again"
    kept_bytes = _number(entries, "retention.bytes")
    if kept_bytes is not None and 0 <= kept_bytes < size_bytes:
        yield f"its retention.bytes is {kept_bytes}, and {size_bytes} are to be replayed"


def _number(entries: Mapping[str, str | None], name: str) -> int | None:
    value = entries.get(name)
    return int(value) if value is not None else None
