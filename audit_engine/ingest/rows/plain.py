"""What our own writers write, as one regular expression a kind: in what matches, nothing is left to check.

    the envelope   every name that is known here, in order, of its type and within its bounds, and no other
    the body       the kind's own fields, the same

A match is sufficient and never needed: a value that is spelled in another way, has a name more, an escape in
a text, or a list of more than LIST_MAX members is read the long way and comes to the same row. It is what
makes ingest quick, as all else costs several passes over the value. That it is UTF-8 is asked apart.

Owns the derivation, from the same hints as the columns. Invariant: what matches, and is
UTF-8, is read by `wire.decode` as an event of a kind that is known, with nothing unrecognised.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from audit_engine.tables.columns import PLACE_OF
from audit_engine.wire.bodies import Body
from audit_engine.wire.codec import BODIES, EPOCH_UNKNOWN, VERSION

LIST_MAX = 100  # more would go deep into the stack of Java's matcher
# 64 bits go up to 9,223,372,036,854,775,807: nineteen digits are surely within them below 9.
_DIGITS = "(?:[1-8][0-9]{0,18}+|9[0-9]{0,17}+)"
INTEGER = f"(?:0|-?{_DIGITS})"
COUNT = f"(?:0|{_DIGITS})"
SMALL_COUNT = "(?:0|[1-9][0-9]{0,8}+)"
_CONTROLS = "".join(f"\\x{number:02x}" for number in range(32))  # one by one: Java is slow with a range
TEXT = rf'"[^"\\{_CONTROLS}]*+"'
# Where its parts are: no text in such a value has a quotation mark, so that each of these is there once.
BEFORE_BODY, BEHIND_BODY, BEFORE_KIND, FOLLOWS_NAME = '{"body":', ',"cluster_id":', '"kind":"', '"follows":'


def plain_values() -> dict[str, str]:
    """By kind: what its whole value looks like."""
    return {kind: rf"^{_object(_envelope(kind, body))}\z" for kind, body in BODIES.items()}


def _envelope(kind: str, body: Body) -> dict[str, str]:
    assert VERSION == 1, "then min_reader may be less"
    place = {
        "topic_id": TEXT,
        "topic": TEXT,
        "partition": SMALL_COUNT,
        "leader_epoch": f"(?:{EPOCH_UNKNOWN}|{SMALL_COUNT})",
    }
    hints = get_type_hints(body.kind)
    return {
        "body": _object({name: _spelled(hints[name]) for name in body.readers}),
        "cluster_id": TEXT,
        "emitter": _object({"broker_id": SMALL_COUNT, "component": TEXT, "incarnation": COUNT}),
        "emitter_seq": COUNT,
        "event_id": TEXT,
        "follows": _or_null(_object({"incarnation": COUNT, "last_seq": COUNT})),
        "kind": f'"{re.escape(kind)}"',
        "log_seq": _or_null(COUNT),
        "min_reader": str(VERSION),
        "observed_at_ms": COUNT,
        "occurred_at_ms": COUNT,
        "replica": _or_null(TEXT),
        "role": _or_null(TEXT),
        "version": "[1-9][0-9]{0,8}+",
        **{name: each if name in PLACE_OF[kind] else _or_null(each) for name, each in place.items()},
    }


def _object(members: Mapping[str, str]) -> str:
    """Names sorted, as `canonical` writes them; `follows` is the one that may be away."""
    found = ""
    for name, spelled in sorted(members.items()):
        each = f'"{re.escape(name)}":{spelled}'
        comma = "," if found else ""
        found += f"(?:{comma}{each})?" if name == "follows" else comma + each
    return rf"\{{{found}\}}"


def _spelled(hint: Any) -> str:
    """A field's value. TypeError if it has no form, as for its column."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        [inner] = [each for each in arguments if each is not type(None)]
        return _or_null(_spelled(inner))
    if origin is tuple:
        if arguments[1:] == (Ellipsis,):
            each = _spelled(arguments[0])
            return rf"\[(?:{each}(?:,{each}){{0,{LIST_MAX - 1}}}+)?\]"
        return rf"\[{','.join(map(_spelled, arguments))}\]"
    if hint is int:
        return INTEGER
    if hint is bool:
        return "(?:true|false)"
    if hint is str:
        return TEXT
    if isinstance(hint, type) and issubclass(hint, Enum):
        return f'"(?:{"|".join(re.escape(str(member.value)) for member in hint)})"'
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        return _object({name: _spelled(each) for name, each in get_type_hints(hint).items()})
    raise TypeError(f"{hint} has no form")


def _or_null(spelled: str) -> str:
    return f"(?:null|{spelled})"
