"""Values of `values` as JSON and back, by their types. What is written is what the fields are called.

A key that is not known is passed over, so that an older scaler reads what a newer one wrote; what is missing
or of another kind is refused.
"""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

V = TypeVar("V")


class NotReadable(Exception):
    """What was read is no such value; the message says where it is not."""


def to_json(value: Any) -> Any:
    """Made of dicts, lists, text and numbers."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: to_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, (tuple, list)):
        return [to_json(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): to_json(each) for key, each in value.items()}
    return value


def dumps(value: Any) -> bytes:
    return json.dumps(to_json(value), separators=(",", ":")).encode()


def loads(kind: type[V], text: bytes | str) -> V:
    """Raises NotReadable."""
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as broken:
        raise NotReadable(f"no JSON: {broken}") from None
    return from_json(kind, raw)


def from_json(kind: type[V], raw: Any) -> V:
    """Raises NotReadable."""
    found: V = _read(kind, raw, kind.__name__)
    return found


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, raw: Any, where: str) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if raw is None and type(None) in parts:
            return None
        return _read(next(part for part in parts if part is not type(None)), raw, where)
    if origin is tuple and isinstance(raw, list):
        return tuple(_read(parts[0], each, f"{where}[{n}]") for n, each in enumerate(raw))
    if origin is dict and isinstance(raw, dict):
        return {int(key): _read(parts[1], each, where) for key, each in raw.items() if key.isdigit()}
    if is_dataclass(kind) and isinstance(raw, dict):
        return _record(kind, raw, where)
    if isinstance(kind, type) and issubclass(kind, Enum) and raw in kind.__members__:
        return kind[raw]
    if kind is float and isinstance(raw, (int, float)) and not isinstance(raw, bool):
        return float(raw)
    if kind in (int, str, bool) and type(raw) is kind:
        return raw
    raise NotReadable(f"{where} is {str(raw)[:40]!r}")


def _record(kind: Any, raw: dict[str, Any], where: str) -> Any:
    hints = _hints(kind)
    told = {}
    for each in fields(kind):
        if each.name in raw:
            told[each.name] = _read(hints[each.name], raw[each.name], f"{where}.{each.name}")
        elif each.default is MISSING and each.default_factory is MISSING:
            raise NotReadable(f"{where}.{each.name} is missing")
    return kind(**told)
