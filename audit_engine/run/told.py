"""A row of `audit_events` as what the judge takes: the event, who said it and under which number.

Owns the way back from columns, and the record that an emitter would publish of what is told. A row whose
kind is not known here, or whose values are not, is told without an event: its number counts, so that its
emitter's sequence stays whole, and its kind is named.

Invariant: the event is the one that was ingested, field for field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from audit_engine.wire import Emitter, Envelope, Follows, encode
from audit_engine.wire.bodies import NotRead
from audit_engine.wire.codec import BODIES, Placed, event_of
from rules.events import Event, LogEvent
from rules.machine import Speaker, Told

# What of a row is needed, beside `body`: the kind's own fields as they are on the wire.
COLUMNS = (
    "kind",
    "event_id",
    "emitter_broker_id",
    "emitter_component",
    "emitter_incarnation",
    "emitter_seq",
    "log_seq",
    "follows_incarnation",
    "follows_last_seq",
    "cluster_id",
    "topic_id",
    "topic",
    "partition",
    "leader_epoch",
    "occurred_at_ms",
    "observed_at_ms",
    "is_read",
)


_PLACED = itemgetter(*Placed._fields[:-1])  # all but the body


def told_of(row: Mapping[str, Any]) -> Told:
    """`row` has COLUMNS and `body`, None for what is null."""
    return Told(
        event=_event(row) if row["is_read"] else None,
        speaker=Speaker(row["emitter_broker_id"], row["emitter_component"], row["emitter_incarnation"]),
        seq=row["emitter_seq"],
        log_seq=row["log_seq"],
        observed_at_ms=row["observed_at_ms"],
        kind=row["kind"],
        follows=_follows(row),
    )


def row_of(told: Told) -> dict[str, Any]:
    """The way back: COLUMNS and `body`, as ingest would have put them down. KeyError of an unknown kind."""
    event = told.event
    assert event is not None
    log = event.log if isinstance(event, LogEvent) else None
    return {
        "kind": event.kind,
        "event_id": event.event_id,
        "emitter_broker_id": told.speaker.broker_id,
        "emitter_component": told.speaker.component,
        "emitter_incarnation": told.speaker.incarnation,
        "emitter_seq": told.seq,
        "log_seq": told.log_seq,
        "follows_incarnation": None,
        "follows_last_seq": None,
        "cluster_id": getattr(event, "cluster_id", None) if log is None else log.cluster_id,
        "topic_id": getattr(event, "topic_id", None) if log is None else log.topic_id,
        "topic": getattr(event, "topic", None),
        "partition": getattr(event, "partition", None) if log is None else log.partition,
        "leader_epoch": getattr(event, "leader_epoch", None),
        "occurred_at_ms": event.occurred_at_ms,
        "observed_at_ms": told.observed_at_ms,
        "is_read": True,
        "body": json.dumps(BODIES[event.kind].write(event), sort_keys=True, separators=(",", ":")),
    }


def _follows(row: Mapping[str, Any]) -> tuple[int, int] | None:
    incarnation, last_seq = row["follows_incarnation"], row["follows_last_seq"]
    return None if incarnation is None or last_seq is None else (incarnation, last_seq)


def _event(row: Mapping[str, Any]) -> Event | None:
    try:
        return event_of(row["kind"], Placed._make((*_PLACED(row), json.loads(row["body"] or "{}"))))
    except NotRead:
        return None


def value_of(told: Told) -> bytes:
    """What its emitter would publish."""
    assert told.event is not None
    return encode(
        Envelope(
            event=told.event,
            emitter=Emitter(*told.speaker),
            emitter_seq=told.seq,
            log_seq=told.log_seq,
            observed_at_ms=told.observed_at_ms,
            is_first=told.seq == 0,
            follows=None if told.follows is None else Follows(*told.follows),
        )
    )
