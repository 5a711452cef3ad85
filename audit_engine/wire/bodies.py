"""A kind's own fields as JSON and back, derived from its dataclass: no kind is named here.

    int, str, bool        as they are          X | None     null
    an Enum               its value            a NamedTuple an object of its fields
    tuple[X, ...]         a list               tuple[X, Y]  a list of that length

What every event says, and which log, topic or cluster it is about, is the envelope's; the rest is the body. A
field that an older writer did not know is absent, and None where the field allows it.

Owns the derivation, once a kind. Refuses a field of any other type when it derives, so that a kind which
cannot be written is found by the first import of `codec`.

Invariant: `read` gives back what `write` was given, or says NotRead; it never drops a name silently.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from rules.events import Event, LogEvent
from tiering.segments.records import INT64_MAX, Json

Read: TypeAlias = Callable[[Json], Any]

PLACE = ("cluster_id", "topic_id", "topic", "partition", "leader_epoch")
COMMON = frozenset(each.name for each in fields(LogEvent)) | frozenset(PLACE)
INT64_MIN = -INT64_MAX - 1


class NotRead(Exception):
    """A value that this version of the kind does not have."""


@dataclass(frozen=True, slots=True)
class Body:
    """The own fields of one kind, by name."""

    kind: type[Event]
    readers: Mapping[str, Read]
    optional: frozenset[str]
    place: Mapping[str, bool]  # which of PLACE it has, and whether None is one; of a LogEvent, none

    def write(self, event: Event) -> dict[str, Json]:
        return {name: _written(getattr(event, name)) for name in self.readers}

    def read(self, members: Mapping[str, Json]) -> tuple[dict[str, Any], dict[str, Json]]:
        """The fields' values, and what is not known here. Raises NotRead."""
        values: dict[str, Any] = {}
        name = ""
        try:
            for name, reader in self.readers.items():
                if name in members:
                    values[name] = reader(members[name])
                elif name in self.optional:
                    values[name] = None
                else:
                    raise NotRead("is missing")
        except NotRead as wrong:
            raise NotRead(f"{name} {wrong}") from None
        if members.keys() <= self.readers.keys():
            return values, {}
        return values, {name: value for name, value in members.items() if name not in self.readers}


def body_of(kind: type[Event]) -> Body:
    """What `kind` has of its own. TypeError if it has a field that has no form here."""
    hints = get_type_hints(kind)
    every = {each.name: hints[each.name] for each in fields(kind)}
    own = {name: hint for name, hint in every.items() if name not in COMMON}
    about_no_log = {} if issubclass(kind, LogEvent) else every
    return Body(
        kind=kind,
        readers={name: _reader(hint) for name, hint in own.items()},
        optional=frozenset(name for name, hint in own.items() if _is_optional(hint)),
        place={name: _is_optional(hint) for name, hint in about_no_log.items() if name in PLACE},
    )


def _is_optional(hint: Any) -> bool:
    return type(None) in get_args(hint)


def _named(name: str, reader: Read, value: Json) -> Any:
    try:
        return reader(value)
    except NotRead as wrong:
        raise NotRead(f"{name} {wrong}") from None


def _written(value: Any) -> Json:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return {name: _written(each) for name, each in zip(value._fields, value, strict=True)}
        return [_written(each) for each in value]
    return value


def _reader(hint: Any) -> Read:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        [inner] = [each for each in arguments if each is not type(None)]
        if inner is int:
            return _integer_or_none
        read = _reader(inner)
        return lambda value: None if value is None else read(value)
    if origin is tuple:
        return _list_reader(arguments)
    if hint is int:
        return _integer
    if hint in (str, bool):
        return _exactly(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum_reader(hint)
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        return _object_reader(hint)
    raise TypeError(f"{hint} has no form on the wire")


def _integer(value: Json) -> int:
    if type(value) is not int or not INT64_MIN <= value <= INT64_MAX:
        raise NotRead("is not an integer of 64 bits")
    return value


def _integer_or_none(value: Json) -> int | None:
    return None if value is None else _integer(value)


def _exactly(kind: type) -> Read:
    def read(value: Json) -> Any:
        if type(value) is not kind:
            raise NotRead(f"is not a {kind.__name__}")
        return value

    return read


def _enum_reader(kind: type[Enum]) -> Read:
    known = {each.value: each for each in kind}

    def read(value: Json) -> Enum:
        found = known.get(value) if isinstance(value, str) else None
        if found is None:
            raise NotRead("has a value that is not known here")
        return found

    return read


def _list_reader(arguments: tuple[Any, ...]) -> Read:
    endless = arguments[1:] == (Ellipsis,)
    readers = [_reader(each) for each in (arguments[:1] if endless else arguments)]

    def read(value: Json) -> tuple[Any, ...]:
        if not isinstance(value, list) or not (endless or len(value) == len(readers)):
            raise NotRead("is not a list of the right length")
        each_reader = readers * len(value) if endless else readers
        return tuple(reader(each) for reader, each in zip(each_reader, value, strict=True))

    return read


def _object_reader(kind: Any) -> Read:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}

    def read(value: Json) -> Any:
        # A name more than these would get lost, as a NamedTuple has no place for it.
        if not isinstance(value, dict) or value.keys() != readers.keys():
            raise NotRead("is not an object of the right names")
        return kind(**{name: _named(name, reader, value[name]) for name, reader in readers.items()})

    return read
