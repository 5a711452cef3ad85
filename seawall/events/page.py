"""docs/EVENTS.md: every kind of event with its fields, from the classes.

python -m seawall.events.page > docs/EVENTS.md
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from dataclasses import fields

from rules.events import KINDS, Event
from seawall.events.described import SHAPES, FieldShown, KindShown, described, fields_of
from seawall.events.examples import example_bytes

_HEAD = """\
# Events

Made from `rules/events` by `python -m seawall.events.page > docs/EVENTS.md`; a test compares them.
`seawall events show KIND` says the same of one kind. [FORMATS.md](FORMATS.md) has the envelope, which is the
same for every kind: who says it, as the how-manieth, when. The fields below are in its `body`, but for those
that say which cluster, topic or log an event is about. Ranges are half-open. No event carries an opinion, and
none carries a reason that its source does not have.
"""
_ABOUT = {
    "ReplicaEvent": "one replica of a log",
    "SegmentEvent": "one attempt to copy a segment",
    "PartitionMetadataEvent": "one partition, by the metadata",
    "LogEvent": "one log",
    "TopicEvent": "a topic, by the metadata",
    "ClusterEvent": "no single log",
}


def page() -> str:
    return "\n".join(_lines()) + "\n"


def about(shape: type[Event]) -> str:
    return _ABOUT[shape.__name__]


def _lines() -> Iterator[str]:
    yield _HEAD
    yield from ("| kind | about | said when |", "|---|---|---|")
    shown = [described(kind) for kind in KINDS]
    for each in shown:
        yield f"| [`{each.name}`](#{each.name}) | {about(each.shape)} | {each.said_when} |"
    yield "\n## What every event of a sort has\n"
    for shape in reversed(SHAPES):
        yield from _shape(shape)
    yield "## Kinds\n"
    for kind, each in zip(KINDS, shown, strict=True):
        yield from _kind(kind, each)


def _shape(shape: type[Event]) -> Iterator[str]:
    yield f"### About {about(shape)}\n"
    yield inspect.cleandoc(shape.__doc__ or "") + "\n"
    above = shape.__mro__[1]
    told = {each.name for each in fields(above)} if above in SHAPES else set()
    if told:
        yield f"Beside what every event about {about(above)} has:\n"
    yield from _table(each for each in fields_of(shape) if each.name not in told)


def _kind(kind: type[Event], shown: KindShown) -> Iterator[str]:
    yield f"### {shown.name}\n"
    yield f"About {about(shown.shape)}. {shown.words}\n"
    if shown.own:
        yield from _table(shown.own)
    yield f"```json\n{json.dumps(json.loads(example_bytes(kind))['body'], sort_keys=True)}\n```\n"


def _table(shown: Iterator[FieldShown] | tuple[FieldShown, ...]) -> Iterator[str]:
    yield from ("| field | type | |", "|---|---|---|")
    for each in shown:
        yield f"| `{each.name}` | {form(each)} | {words(each)} |".replace("|  |", "| |")
    yield ""


def form(field: FieldShown) -> str:
    return field.type_name + (" or null" if field.is_optional else "")


def words(field: FieldShown) -> str:
    """What is known of a field beyond its type."""
    values = "; ".join(f"`{value}`{f' {said}' if said else ''}" for value, said in field.values)
    return ". ".join(each for each in (field.words, values) if each)


if __name__ == "__main__":
    sys.stdout.write(page())
