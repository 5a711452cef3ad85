"""The columns of `audit_events` and `audit_quarantine`, derived from the wire form and from rules.events.

The envelope's fields are columns; the kind's own fields are one column, `body`, the JSON as it came. A column
for each of them was measured to cost several times what the copy itself does (docs/decisions/0016). Each kind
has its fields as columns in a view of its own (`audit_engine.tables.kinds`), by these types:

    an int      BIGINT      a tuple[X, ...]   ARRAY<X>       X | None    as X, null
    a text      STRING      a tuple[X, X]     ARRAY<X>       an Enum     STRING, its value
    a bool      BOOLEAN     a NamedTuple      STRUCT of its fields

Owns the derivation. Invariant: a kind more, or a field more, changes no table.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from audit_engine.wire.bodies import Body
from audit_engine.wire.codec import BODIES
from rules.events import LogEvent

EVENTS = "audit_events"
QUARANTINE = "audit_quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """`sql_type` is Spark's; `is_needed`: NOT NULL."""

    name: str
    sql_type: str
    is_needed: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnField:
    """A kind's own field: its name on the wire, its column in the kind's view, and what values there are."""

    name: str
    column: str
    sql_type: str
    is_optional: bool
    allowed: tuple[str, ...] | None


def _needed(name: str, sql_type: str, comment: str) -> Column:
    return Column(name=name, sql_type=sql_type, is_needed=True, comment=comment)


def _free(name: str, sql_type: str, comment: str) -> Column:
    return Column(name=name, sql_type=sql_type, comment=comment)


PLACE = (
    _needed("ingest_day", "DATE", "day of the commit, not of the event"),
    _needed("kafka_topic", "STRING", "where the record lay"),
    _needed("kafka_partition", "INT", ""),
    _needed("kafka_offset", "BIGINT", "with topic and partition, the row's identity"),
    _needed("kafka_timestamp_ms", "BIGINT", "the broker's, by LogAppendTime"),
)
ENVELOPE = (
    _needed("kind", "STRING", "as it came, known here or not"),
    _needed("event_id", "STRING", "the act's, the same when it is told again"),
    _needed("emitter_broker_id", "INT", ""),
    _needed("emitter_component", "STRING", ""),
    _needed("emitter_incarnation", "BIGINT", ""),
    _needed("emitter_seq", "BIGINT", "gapless in an incarnation"),
    _free("log_seq", "BIGINT", "gapless in an incarnation and log"),
    _needed("is_first", "BOOLEAN", "it says which incarnation it follows"),
    _free("follows_incarnation", "BIGINT", ""),
    _free("follows_last_seq", "BIGINT", ""),
    _needed("cluster_id", "STRING", ""),
    _free("log_id", "STRING", "topic_id:partition, null where the event is about no log"),
    _free("topic_id", "STRING", ""),
    _free("topic", "STRING", ""),
    _free("partition", "INT", ""),
    _free("leader_epoch", "INT", ""),
    _free("replica", "STRING", ""),
    _free("role", "STRING", ""),
    _needed("occurred_at_ms", "BIGINT", ""),
    _needed("observed_at_ms", "BIGINT", ""),
    _needed("version", "INT", "of the wire form"),
    _needed("payload_hash", "BIGINT", "xxhash64 of the value: tells deliveries of one number apart"),
    _needed(
        "is_read",
        "BOOLEAN",
        "its kind was known at ingest, and its body as it should be",
    ),
    _needed("body", "STRING", "the kind's own fields, the JSON that came"),
    _free("unrecognised", "STRING", "the whole value, where its envelope has names that are not known here"),
)

QUARANTINE_COLUMNS = (
    *PLACE,
    _needed("kafka_end_offset", "BIGINT", "half-open: one record, or all that was lost"),
    _needed("reason", "STRING", "stable, for programs"),
    _needed("detail", "STRING", ""),
    _free("key", "BINARY", ""),
    _free("value", "BINARY", "the bytes as they came"),
)

LOG_PLACE = ("topic_id", "topic", "partition", "leader_epoch")
_RESERVED = frozenset(column.name for column in (*PLACE, *ENVELOPE))


def sql_type(hint: Any) -> str:
    """Spark's type for a field of an event. TypeError if there is none."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        [inner] = [each for each in arguments if each is not type(None)]
        return sql_type(inner)
    if origin is tuple:
        inner_types = {sql_type(each) for each in arguments if each is not Ellipsis}
        if len(inner_types) != 1:
            raise TypeError(f"{hint} has no column: its members are of several types")
        [inner_type] = inner_types
        return f"ARRAY<{inner_type}>"
    if hint is int:
        return "BIGINT"
    if hint is bool:
        return "BOOLEAN"
    if hint is str or (isinstance(hint, type) and issubclass(hint, Enum)):
        return "STRING"
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        inner = ", ".join(f"{name}: {sql_type(each)}" for name, each in get_type_hints(hint).items())
        return f"STRUCT<{inner}>"
    raise TypeError(f"{hint} has no column")


def _allowed(hint: Any) -> tuple[str, ...] | None:
    for each in (hint, *get_args(hint)):
        if isinstance(each, type) and issubclass(each, Enum):
            return tuple(str(member.value) for member in each)
    return None


def _own_fields(kind: str, body: Body) -> tuple[OwnField, ...]:
    hints = get_type_hints(body.kind)
    return tuple(
        OwnField(
            name=name,
            column=f"{kind}_{name}" if name in _RESERVED else name,
            sql_type=sql_type(hints[name]),
            is_optional=name in body.optional,
            allowed=_allowed(hints[name]),
        )
        for name in body.readers
    )


def _place_of(kind: type[Any]) -> tuple[str, ...]:
    """Which of the envelope's free columns an event of this kind fills."""
    if issubclass(kind, LogEvent):
        return LOG_PLACE
    hints = get_type_hints(kind)
    return tuple(name for name in LOG_PLACE if name in hints and type(None) not in get_args(hints[name]))


OWN_FIELDS = {kind: _own_fields(kind, body) for kind, body in BODIES.items()}
PLACE_OF = {kind: _place_of(body.kind) for kind, body in BODIES.items()}
EVENT_COLUMNS = (*PLACE, *ENVELOPE)

# Structure only: what an event says is judged, never refused.
STRUCTURE = {
    EVENTS: "kafka_partition >= 0 AND kafka_offset >= 0 AND emitter_seq >= 0 AND emitter_incarnation >= 0",
    QUARANTINE: "kafka_partition >= 0 AND kafka_offset >= 0 AND kafka_end_offset > kafka_offset",
}
COLUMNS = {EVENTS: EVENT_COLUMNS, QUARANTINE: QUARANTINE_COLUMNS}
