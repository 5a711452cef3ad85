"""The whole event as bytes: UTF-8 JSON, names sorted, no blanks. docs/FORMATS.md has the table.

    version, min_reader    in which it was written, and the least that a reader of the envelope must know
    kind, event_id, …      the envelope, the same for every kind
    body                   the kind's own fields

Additions do not raise `min_reader`: a name more in the envelope or in a body, a new kind, a new value of an
enumeration are all read as they are and written again. Only what looks like damage is an error.

Owns this form. Invariant: of a record whose envelope is readable nothing is refused, whatever its body is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from audit_engine.errors import EventMalformed, EventTooNew
from audit_engine.wire.bodies import PLACE, Body, NotRead, body_of
from audit_engine.wire.envelope import Emitter, Envelope, Follows, Unread
from rules.events import KINDS, Event, LogEvent
from rules.identity import LogId
from tiering.segments.errors import RecordMalformed
from tiering.segments.json_fields import Fields, canonical, merged, parse_object
from tiering.segments.records import INT32_MAX, Json

VERSION = 1
MIN_READER = 1
EPOCH_UNKNOWN = -1  # Kafka's own mark

BODIES: dict[str, Body] = {kind.kind: body_of(kind) for kind in KINDS}


def encode(envelope: Envelope) -> bytes:
    members: dict[str, Json] = {
        "version": VERSION,
        "min_reader": MIN_READER,
        "emitter": envelope.emitter._asdict(),
        "emitter_seq": envelope.emitter_seq,
        "log_seq": envelope.log_seq,
        "observed_at_ms": envelope.observed_at_ms,
        "replica": envelope.replica,
        "role": envelope.role,
        **_said(envelope.event),
    }
    if envelope.is_first:
        members["follows"] = None if envelope.follows is None else envelope.follows._asdict()
    return canonical(merged(members, envelope.unrecognised))


def decode(value: bytes | None, what: str = "the record") -> Envelope:
    """The event in a record's value. Raises EventMalformed, EventTooNew."""
    try:
        fields = Fields(what, parse_object(value or b"", what))
        version, min_reader = fields.integer("version", 1), fields.integer("min_reader", 1)
        if min_reader > VERSION:
            why = f"version {version} asks for a reader of version {min_reader}; this one has {VERSION}"
            raise EventTooNew(what=what, why=why)
        return _envelope(fields)
    except RecordMalformed as malformed:
        raise EventMalformed(what=what, why=malformed.why) from malformed


def _said(event: Event | Unread) -> dict[str, Json]:
    if isinstance(event, Unread):
        place = {name: getattr(event, name) for name in PLACE}
        body = dict(event.body)
    elif isinstance(event, LogEvent):
        place = event.log._asdict() | {"topic": event.topic, "leader_epoch": event.leader_epoch}
        body = BODIES[event.kind].write(event)
    else:
        place = {name: getattr(event, name, None) for name in PLACE}
        body = BODIES[event.kind].write(event)
    return {
        "kind": event.kind,
        "event_id": event.event_id,
        "occurred_at_ms": event.occurred_at_ms,
        **place,
        "body": body,
    }


def _envelope(fields: Fields) -> Envelope:
    emitter = fields.inner("emitter")
    is_first = "follows" in fields.left()
    follows = fields.optional_inner("follows")
    parts: dict[str, Any] = {
        "emitter": Emitter(
            emitter.integer("broker_id", maximum=INT32_MAX),
            emitter.text("component"),
            emitter.integer("incarnation"),
        ),
        "emitter_seq": fields.integer("emitter_seq"),
        "log_seq": fields.optional_integer("log_seq"),
        "observed_at_ms": fields.integer("observed_at_ms"),
        "is_first": is_first,
        "follows": follows and Follows(follows.integer("incarnation"), follows.integer("last_seq")),
        "replica": fields.optional_text("replica"),
        "role": fields.optional_text("role"),
    }
    event, body_left = _event(fields)
    inner = {"emitter": emitter.left(), "follows": follows.left() if follows else {}, "body": body_left}
    unrecognised = fields.left() | {name: left for name, left in inner.items() if left}
    return Envelope(event=event, unrecognised=unrecognised, **parts)


def _event(fields: Fields) -> tuple[Event | Unread, dict[str, Json]]:
    """The event, and what of its body is not known here."""
    unread = Unread(
        kind=fields.text("kind"),
        event_id=fields.text("event_id"),
        occurred_at_ms=fields.integer("occurred_at_ms"),
        cluster_id=fields.text("cluster_id"),
        topic_id=fields.optional_text("topic_id"),
        topic=fields.optional_text("topic"),
        partition=fields.optional_integer("partition", maximum=INT32_MAX),
        leader_epoch=fields.optional_integer("leader_epoch", minimum=EPOCH_UNKNOWN, maximum=INT32_MAX),
        body=fields.inner("body").left(),
        why="the kind is not known here",
    )
    body = BODIES.get(unread.kind)
    if body is None:
        return unread, {}
    try:
        return _known(body, unread)
    except NotRead as wrong:
        return replace(unread, why=str(wrong)), {}


class Placed(NamedTuple):
    """What an event says beside its kind: as `Unread` has it."""

    event_id: str
    occurred_at_ms: int
    cluster_id: str
    topic_id: str | None
    topic: str | None
    partition: int | None
    leader_epoch: int | None
    body: Mapping[str, Json]


def event_of(kind: str, said: Placed) -> Event:
    """The event that its place and body say. Raises NotRead."""
    body = BODIES.get(kind)
    if body is None:
        raise NotRead("the kind is not known here")
    return _known(body, said)[0]


def _known(body: Body, unread: Unread | Placed) -> tuple[Event, dict[str, Json]]:
    place = _log(unread) if issubclass(body.kind, LogEvent) else _no_log(body, unread)
    values, left = body.read(unread.body)
    named: dict[str, Any] = {**place, **values}
    return body.kind(event_id=unread.event_id, occurred_at_ms=unread.occurred_at_ms, **named), left


def _log(unread: Unread | Placed) -> dict[str, Any]:
    topic_id, topic, partition, epoch = unread.topic_id, unread.topic, unread.partition, unread.leader_epoch
    if topic_id is None or topic is None or partition is None or epoch is None:
        raise NotRead("it names no log, and this kind is about one")
    return {"log": LogId(unread.cluster_id, topic_id, partition), "topic": topic, "leader_epoch": epoch}


def _no_log(body: Body, unread: Unread | Placed) -> dict[str, Any]:
    place = {name: getattr(unread, name) for name in PLACE}
    for name, value in place.items():
        if value is None and not body.place.get(name, True):
            raise NotRead(f"{name} is missing")
        if value is not None and name not in body.place:
            raise NotRead(f"it has a {name}, and this kind has none")
    return {name: place[name] for name in body.place}
