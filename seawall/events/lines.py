"""An event as one line: when, what, of which log, by whom, and the kind's own fields as on the wire.

Invariant: a line is one line, whatever the event holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from audit_engine.wire import Envelope, Unread
from audit_engine.wire.codec import BODIES
from rules.events import LogEvent
from tiering.segments.records import Json

LIST_SHOWN = 3
TEXT_SHOWN = 100


def line(envelope: Envelope, when: str) -> str:
    emitter = envelope.emitter
    who = f"{emitter.broker_id}/{emitter.component} #{envelope.emitter_seq}"
    said = [f"{name} {_shown(value)}" for name, value in _body(envelope) if value is not None]
    return _on_one_line("  ".join([when, envelope.kind, subject(envelope), who, *said]))


def subject(envelope: Envelope) -> str:
    """The log, the topic, or a dash where it is about none."""
    topic, partition = place(envelope)
    if topic is None:
        return "-"
    return topic if partition is None else f"{topic}-{partition}"


def place(envelope: Envelope) -> tuple[str | None, int | None]:
    """The topic's name and the partition, where the event has such."""
    event = envelope.event
    if isinstance(event, LogEvent):
        return event.topic, event.log.partition
    return getattr(event, "topic", None), getattr(event, "partition", None)


def _body(envelope: Envelope) -> Iterator[tuple[str, Json]]:
    event = envelope.event
    body = event.body if isinstance(event, Unread) else BODIES[event.kind].write(event)
    yield from body.items()
    if isinstance(event, Unread):
        yield "not_read", event.why


def _shown(value: Json) -> str:
    if isinstance(value, list) and len(value) > LIST_SHOWN:
        return f"{len(value)} of them"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…"


def _on_one_line(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text)
