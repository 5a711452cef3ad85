"""A state as bytes and back: canonical JSON with a version, derived from the classes.

Names sorted, no blanks, ASCII, and nothing written that is as it is by default: equal states are equal bytes,
and a field more in a later version leaves the bytes of older states as they were.

Owns the form. Refuses what a newer version wrote. Invariant: `decode(encode(state)) == state`.
"""

from __future__ import annotations

import hashlib
import json
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from rules.machine.state import LogState

VERSION = 1


class StateTooNew(Exception):
    """A state that a newer Seawall wrote."""


def encode(state: LogState) -> bytes:
    tree = {"version": VERSION, **_written(state)}
    return json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()


def decode(raw: bytes) -> LogState:
    tree = json.loads(raw)
    version = tree.pop("version", None)
    if version != VERSION:
        raise StateTooNew(f"version {version}; this Seawall reads {VERSION}")
    state: LogState = _read(LogState, tree)
    return state


def state_hash(state: LogState) -> str:
    return hashlib.sha256(encode(state)).hexdigest()


def copied(state: LogState) -> LogState:
    """Another of equal value that shares nothing that can change."""
    made: LogState = _copied(state)
    made.policy_memo = None
    return made


def _written(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {
            name: _written(getattr(value, name))
            for name, default in _defaults(type(value))
            if default is MISSING or getattr(value, name) != default
        }
    if isinstance(value, dict):
        return {str(name): _written(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_written(each) for each in value]
    return value


def _copied(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        made = object.__new__(type(value))
        for name, _ in _defaults(type(value)):
            setattr(made, name, _copied(getattr(value, name)))
        return made
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _read(hint: Any, value: Any) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        [inner] = [each for each in arguments if each is not type(None)]
        return _read(inner, value)
    if is_dataclass(hint):
        assert isinstance(hint, type)
        hints = _hints(hint)
        return hint(**{name: _read(hints[name], each) for name, each in value.items()})
    if origin is dict:
        return {arguments[0](name): _read(arguments[1], each) for name, each in value.items()}
    if origin is list:
        return [_read(arguments[0], each) for each in value]
    return _read_tuple(hint, arguments, value) if _is_tuple(hint, origin) else value


def _is_tuple(hint: Any, origin: Any) -> bool:
    return origin is tuple or (isinstance(hint, type) and issubclass(hint, tuple))


def _read_tuple(hint: Any, arguments: tuple[Any, ...], value: Any) -> Any:
    if hasattr(hint, "_fields"):
        return hint(*value)
    if arguments[-1] is Ellipsis:
        return tuple(_read(arguments[0], each) for each in value)
    return tuple(_read(inner, each) for inner, each in zip(arguments, value, strict=True))


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(
        (each.name, each.default_factory() if each.default_factory is not MISSING else each.default)
        for each in fields(kind)
        if each.metadata.get("is_carried", True)
    )
