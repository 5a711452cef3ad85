"""A kind as its class has it: when it is said, what it is about, its fields with types and words.

Owns the derivation. Invariant: what is shown stands in rules.events, nowhere else: the table of the package's
docstring, the classes' docstrings, and the comments beside their fields.
"""

from __future__ import annotations

import inspect
import re
import types
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

import rules.events
from rules.events import (
    KINDS,
    ClusterEvent,
    Event,
    LogEvent,
    PartitionMetadataEvent,
    ReplicaEvent,
    SegmentEvent,
    TopicEvent,
)
from rules.identity import LogId

# The narrower before the wider.
SHAPES: tuple[type[Event], ...] = (
    ReplicaEvent,
    SegmentEvent,
    PartitionMetadataEvent,
    LogEvent,
    TopicEvent,
    ClusterEvent,
)
_WHEN = re.compile(r"^    (\w+)  +(\S.*)$", re.MULTILINE)
_FIELD = re.compile(r"^    (\w+): [^#\n]+?(?:  # (.*))?$", re.MULTILINE)
_MEMBER = re.compile(r"^    \w+ = \"(\w+)\"(?:  # (.*))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldShown:
    """`values` are an enumeration's, each with its words."""

    name: str
    type_name: str
    is_optional: bool
    words: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KindShown:
    """`shape` says what the kind is about; `own` are the fields beyond the shape's."""

    name: str
    said_when: str
    words: str
    shape: type[Event]
    own: tuple[FieldShown, ...]


def described(kind: type[Event]) -> KindShown:
    shape = next(each for each in SHAPES if issubclass(kind, each))
    inherited = {each.name for each in fields(shape)}
    return KindShown(
        name=kind.kind,
        said_when=_SAID_WHEN[kind.kind],
        words=inspect.cleandoc(kind.__doc__ or ""),
        shape=shape,
        own=tuple(each for each in fields_of(kind) if each.name not in inherited),
    )


def fields_of(kind: type[Event]) -> tuple[FieldShown, ...]:
    """All of them, those of every event first."""
    hints = get_type_hints(kind)
    words = {name: said for each in reversed(kind.__mro__) for name, said in _comments(each)}
    return tuple(_field(each.name, hints[each.name], words.get(each.name, "")) for each in fields(kind))


def named(name: str) -> type[Event] | None:
    return next((kind for kind in KINDS if kind.kind == name), None)


def _field(name: str, hint: Any, words: str) -> FieldShown:
    plain, is_optional = _without_none(hint)
    return FieldShown(
        name=name, type_name=_type_name(plain), is_optional=is_optional, words=words, values=_values(plain)
    )


def _comments(kind: type) -> list[tuple[str, str]]:
    if kind.__module__.partition(".")[0] != "rules":
        return []
    return [(name, said) for name, said in _FIELD.findall(inspect.getsource(kind)) if said]


def _values(hint: Any) -> tuple[tuple[str, str], ...]:
    if not (isinstance(hint, type) and issubclass(hint, Enum)):
        return ()
    return tuple(_MEMBER.findall(inspect.getsource(hint)))


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) not in (Union, types.UnionType):
        return hint, False
    [inner] = [each for each in get_args(hint) if each is not type(None)]
    return inner, True


def _type_name(hint: Any) -> str:
    arguments = get_args(hint)
    if get_origin(hint) is tuple:
        if arguments[-1] is Ellipsis:
            return f"list of {_type_name(arguments[0])}"
        return f"[{', '.join(map(_type_name, arguments))}]"
    if hint is LogId:
        return "cluster_id, topic_id, partition"
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return f"{{{', '.join(hint._fields)}}}"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return "text"
    return {int: "int", str: "text", bool: "bool"}[hint]


_SAID_WHEN = {name: words for name, words in _WHEN.findall(rules.events.__doc__ or "") if name != "kind"}
