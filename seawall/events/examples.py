"""One event of every kind, always the same: for the page, for `seawall events show`, for the test vectors.

Each field's value follows from its name, or else from its type, so that a new kind has its example at once.

Invariant: an example has no None where a value may stand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, get_args, get_origin, get_type_hints

from audit_engine.wire import Emitter, Envelope, encode
from rules.events import Event, LogEvent
from rules.identity import LogId, ObjectRef

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
TOPIC_ID = "CgkTzsXgRlOwPTRJHnL2yg"
AT_MS = 1_763_458_200_000
SEGMENT_ID = "c2VnbWVudC0wMDAwMDAwMQ"

_OBJECT = ObjectRef(
    key=f"segments/{TOPIC_ID}/3/00000000000000009000-{SEGMENT_ID}.log",
    size_bytes=1_048_576,
    checksum_algorithm="CRC64NVME",
    checksum="rosUhgp5ndg=",
    version_id="3/L4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY",
)
_BY_NAME: Mapping[str, Any] = {
    "occurred_at_ms": AT_MS,
    "not_before_ms": AT_MS - 5_000,
    "max_timestamp_ms": AT_MS - 3_600_000,
    "valid_from_ms": AT_MS - 60_000,
    "expires_at_ms": AT_MS + 3_600_000,
    "keep_until_ms": AT_MS + 7 * 86_400_000,
    "cluster_id": CLUSTER_ID,
    "topic_id": TOPIC_ID,
    "topic": "orders",
    "partition": 3,
    "leader_epoch": 5,
    "log": LogId(CLUSTER_ID, TOPIC_ID, 3),
    "broker_id": 1,
    "leader_id": 2,
    "directory_id": "2sBnEmbBTdSPrXVzGeHLkw",
    "replica_incarnation": AT_MS * 1_000_000,
    "segment_id": SEGMENT_ID,
    "base_offset": 9_000,
    "end_offset": 10_000,
    "data_end": 10_000,
    "start_offset": 9_000,
    "record_count": 1_000,
    "size_bytes": 1_048_576,
    "old_start": 8_000,
    "new_start": 9_000,
    "log_start": 9_000,
    "local_start": 9_000,
    "checkpoint_entry": 9_000,
    "tiered_start": 0,
    "frontier": 10_000,
    "high_watermark": 10_500,
    "log_end": 10_500,
    "old_end": 10_600,
    "new_end": 10_500,
    "objects": (_OBJECT,),
    "object_key": _OBJECT.key,
    "version_id": _OBJECT.version_id,
    "key": "retention.ms",
    "old_value": "604800000",
    "new_value": "3600000",
    "before": "2592000000",
    "after": "604800000",
    "pattern": "orders*",
    "principal": "alice",
    "change_id": "CHG-1",
    "isr": (2, 3),
    "replicas": (1, 2, 3),
    "epochs": ((4, 8_000), (5, 9_500)),
    "path": "/var/lib/kafka/data-1",
    "component": "agent",
    "detail": "as it was found",
}


def example(kind: type[Event]) -> Event:
    hints = get_type_hints(kind)
    own = {each.name: _value(kind.kind, each.name, hints[each.name]) for each in fields(kind)}
    return kind(**own)


def example_envelope(kind: type[Event]) -> Envelope:
    event = example(kind)
    return Envelope(
        event=event,
        emitter=Emitter(broker_id=1, component="agent", incarnation=AT_MS - 86_400_000),
        emitter_seq=41,
        log_seq=7 if isinstance(event, LogEvent) else None,
        observed_at_ms=AT_MS + 12,
    )


def example_bytes(kind: type[Event]) -> bytes:
    return encode(example_envelope(kind))


def _value(kind: str, name: str, hint: Any) -> Any:
    if name in _BY_NAME:
        return _BY_NAME[name]
    return _by_type(kind, name, hint)


def _by_type(kind: str, name: str, hint: Any) -> Any:
    arguments = get_args(hint)
    if type(None) in arguments:
        return _by_type(kind, name, next(each for each in arguments if each is not type(None)))
    if get_origin(hint) is tuple:
        inner = arguments[:1] if arguments[-1] is Ellipsis else arguments
        return tuple(_by_type(kind, name, each) for each in inner)
    if hint is bool:
        return False
    if hint is int:
        return 12
    if issubclass(hint, Enum):
        return next(iter(hint))
    if name.endswith(("digest", "hash")):
        return hashlib.sha256(f"{kind} {name}".encode()).hexdigest()
    return f"{kind}-1" if name == "event_id" else f"{name}-1"
