"""What our own writers write, as one form a kind: in what looks so, nothing is left to check.

    the envelope   every name that is known here, in order, of its type and within its bounds, and no other
    the body       the kind's own fields, the same

A match is sufficient and never needed: a value that is spelled in another way, has a name more, or an escape
in a text of the envelope, is read the long way and comes to the same row. It is what makes ingest quick: the
bytes are gone through once (PlainEvents.java), and the columns are pieces of them.

Owns the derivation, from the same hints as the columns, and which column of the envelope each place of the
form is. Invariant: what matches is read by `wire.decode` as an event of a kind that is known, with nothing
unrecognised.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from audit_engine.spool.spool import EVENT_BYTES_MAX
from audit_engine.tables.columns import PLACE_OF
from audit_engine.wire.bodies import Body
from audit_engine.wire.codec import BODIES, EPOCH_UNKNOWN, VERSION

Form: TypeAlias = dict[str, Any]  # as PlainEvents.java says
Pieces: TypeAlias = Mapping[str, tuple[str, str]]  # by column: Spark's type, and how a piece becomes one

# The columns of what was cut out of an event, in order.
PIECES: Pieces = {
    "body": ("STRING", "raw"),
    "cluster_id": ("STRING", "text"),
    "emitter_broker_id": ("INT", "int"),
    "emitter_component": ("STRING", "text"),
    "emitter_incarnation": ("BIGINT", "long"),
    "emitter_seq": ("BIGINT", "long"),
    "event_id": ("STRING", "text"),
    "is_first": ("BOOLEAN", "present"),
    "follows_incarnation": ("BIGINT", "long"),
    "follows_last_seq": ("BIGINT", "long"),
    "kind": ("STRING", "text"),
    "leader_epoch": ("INT", "int"),
    "log_seq": ("BIGINT", "long"),
    "observed_at_ms": ("BIGINT", "long"),
    "occurred_at_ms": ("BIGINT", "long"),
    "partition": ("INT", "int"),
    "replica": ("STRING", "text"),
    "role": ("STRING", "text"),
    "topic": ("STRING", "text"),
    "topic_id": ("STRING", "text"),
    "version": ("INT", "int"),
}
_COLUMNS = list(PIECES)
# 64 bits hold nineteen digits below 9, 32 bits any nine; what has more is read the long way.
_LONG, _SHORT = 19, 9
_INT64_MAX = 2**63 - 1
_TEXT: Form = {"text": False}
_TEXT_WITHIN: Form = {"text": True}  # of the body, which is kept as it came


def plain_events() -> str:
    """How each kind is spelled, for PlainEvents."""
    return _told(len(PIECES), {kind: _object(_envelope(kind, body)) for kind, body in BODIES.items()})


def plain_bodies(kinds: Iterable[str], pieces: Pieces) -> str:
    """How the body of each kind is spelled, with those of its own fields kept that `pieces` names."""
    columns = list(pieces)

    def member(name: str, hint: Any) -> Form:
        if name not in pieces:
            return _spelled(hint)
        sort = pieces[name][1]
        kept = {"text": _TEXT, "int": _number(1 - 10**_SHORT, _SHORT)}.get(sort) or _spelled(_inner(hint))
        form = {"keep": [columns.index(name), sort, kept]}
        return form if _inner(hint) is hint else {"or_null": form}

    def of(kind: str) -> Form:
        hints = get_type_hints(BODIES[kind].kind)
        return _object({name: member(name, hints[name]) for name in BODIES[kind].readers})

    return _told(len(columns), {kind: of(kind) for kind in kinds})


def _told(columns: int, kinds: Mapping[str, Form]) -> str:
    return json.dumps(
        {
            "columns": columns,
            "bytes_max": EVENT_BYTES_MAX,
            # Where the kind is, the last time: behind the body, and no text has a bare quotation mark.
            "before_kind": '"kind":"',
            "kinds": kinds,
        }
    )


def _envelope(kind: str, body: Body) -> dict[str, Form]:
    assert VERSION == 1, "then min_reader may be less"
    place = {
        "topic_id": _kept("topic_id", _TEXT),
        "topic": _kept("topic", _TEXT),
        "partition": _kept("partition", _number(0, _SHORT)),
        "leader_epoch": _kept("leader_epoch", _number(EPOCH_UNKNOWN, _SHORT)),
    }
    hints = get_type_hints(body.kind)
    emitter = {
        "broker_id": _kept("emitter_broker_id", _number(0, _SHORT)),
        "component": _kept("emitter_component", _TEXT),
        "incarnation": _kept("emitter_incarnation", _number(0, _LONG)),
    }
    follows = {
        "incarnation": _kept("follows_incarnation", _number(0, _LONG)),
        "last_seq": _kept("follows_last_seq", _number(0, _LONG)),
    }
    return {
        "body": _kept("body", _object({name: _spelled(hints[name]) for name in body.readers})),
        "cluster_id": _kept("cluster_id", _TEXT),
        "emitter": _object(emitter),
        "emitter_seq": _kept("emitter_seq", _number(0, _LONG)),
        "event_id": _kept("event_id", _TEXT),
        "follows": _kept("is_first", {"or_null": _object(follows)}),
        "kind": _kept("kind", {"is": f'"{kind}"'}),
        "log_seq": {"or_null": _kept("log_seq", _number(0, _LONG))},
        "min_reader": {"is": str(VERSION)},
        "observed_at_ms": _kept("observed_at_ms", _number(0, _LONG)),
        "occurred_at_ms": _kept("occurred_at_ms", _number(0, _LONG)),
        "replica": {"or_null": _kept("replica", _TEXT)},
        "role": {"or_null": _kept("role", _TEXT)},
        "version": _kept("version", _number(1, _SHORT)),
        **{name: each if name in PLACE_OF[kind] else {"or_null": each} for name, each in place.items()},
    }


def _object(members: Mapping[str, Form]) -> Form:
    """Names sorted, as `canonical` writes them; `follows` is the one that may be away."""
    found: list[Form] = [{"is": "{"}]
    for name, spelled in sorted(members.items()):
        comma = "," if found[1:] else ""
        each = [{"is": f'{comma}"{name}":'}, spelled]
        found += [{"maybe": {"all": each}}] if name == "follows" else each
    return {"all": [*found, {"is": "}"}]}


def _inner(hint: Any) -> Any:
    """What an optional field is when it is there; of any other, what it is."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    [inner] = [each for each in get_args(hint) if each is not type(None)]
    return inner


def _spelled(hint: Any) -> Form:
    """A field's value. TypeError if it has no form, as for its column."""
    origin, arguments = get_origin(hint), get_args(hint)
    if _inner(hint) is not hint:
        return {"or_null": _spelled(_inner(hint))}
    if origin is tuple:
        if arguments[1:] == (Ellipsis,):
            return {"list": _spelled(arguments[0])}
        members = [part for each in arguments for part in ({"is": ","}, _spelled(each))]
        return {"all": [{"is": "["}, *members[1:], {"is": "]"}]}
    if hint is int:
        return _number(-_INT64_MAX, _LONG)
    if hint is bool:
        return {"one": ["true", "false"]}
    if hint is str:
        return _TEXT_WITHIN
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"one": [f'"{member.value}"' for member in hint]}
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        return _object({name: _spelled(each) for name, each in get_type_hints(hint).items()})
    raise TypeError(f"{hint} has no form")


def _kept(column: str, form: Form) -> Form:
    return {"keep": [_COLUMNS.index(column), PIECES[column][1], form]}


def _number(least: int, digits: int) -> Form:
    return {"number": [least, min(10**digits - 1, _INT64_MAX), digits]}
