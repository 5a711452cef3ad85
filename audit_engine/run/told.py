"""A row of `audit_events` as what the judge takes: the event, who said it and under which number.

Owns the way back from columns. A row whose kind is not known here, or whose values are not, is told without
an event: its number counts, so that its emitter's sequence stays whole, and its kind is named.

Invariant: the event is the one that was ingested, field for field.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from audit_engine.wire.bodies import NotRead
from audit_engine.wire.codec import event_of
from audit_engine.wire.envelope import Unread
from rules.events import Event
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


def _follows(row: Mapping[str, Any]) -> tuple[int, int] | None:
    incarnation, last_seq = row["follows_incarnation"], row["follows_last_seq"]
    return None if incarnation is None or last_seq is None else (incarnation, last_seq)


def _event(row: Mapping[str, Any]) -> Event | None:
    said = Unread(
        kind=row["kind"],
        event_id=row["event_id"],
        occurred_at_ms=row["occurred_at_ms"],
        cluster_id=row["cluster_id"],
        topic_id=row["topic_id"],
        topic=row["topic"],
        partition=row["partition"],
        leader_epoch=row["leader_epoch"],
        body=json.loads(row["body"] or "{}"),
        why="",
    )
    try:
        return event_of(said)
    except NotRead:
        return None
