"""JSON objects read field by field: strict on what is known, and nothing that is not known is dropped.

Owns the reading of one JSON text into fields, and the one way to write JSON here. Refuses: names given twice,
NaN and infinities, a number where a text belongs, true where 1 belongs, integers outside their range, nesting
deeper than MAX_DEPTH (Python's own limit depends on who calls).

Invariant: `canonical` writes equal values as equal bytes: names sorted, no blanks, ASCII.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import NoReturn

from tiering.segments.errors import RecordMalformed
from tiering.segments.records import INT64_MAX, Json

MAX_DEPTH = 32

_MISSING = object()
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def parse_object(text: bytes, what: str) -> dict[str, Json]:
    """A JSON object, each name in it given once, every number finite."""
    try:
        decoded = text.decode("utf-8")
        if _is_too_deep(decoded):
            raise ValueError(f"nested deeper than {MAX_DEPTH}")
        parsed = json.loads(
            decoded,
            object_pairs_hook=_once,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except ValueError as refused:
        raise RecordMalformed(what=what, why=f"is not the JSON of a record: {refused}") from None
    if not isinstance(parsed, dict):
        raise RecordMalformed(what=what, why="is JSON, but not an object")
    return parsed


def _is_too_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > MAX_DEPTH:
            return True
    return False


def _once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name is given twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is too large")
    return number


def canonical(members: Mapping[str, Json]) -> bytes:
    """The one spelling of these members."""
    text = json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


def merged(known: dict[str, Json], unrecognised: Mapping[str, Json]) -> dict[str, Json]:
    """`known`, and beside it what was once read and not understood, at the depth where it was found."""
    for name, value in unrecognised.items():
        if name not in known:
            known[name] = value
        elif isinstance(known[name], dict) and isinstance(value, dict):
            merged(known[name], value)
    return known


class Fields:
    """The members of one JSON object, each taken once; `left` are those that nobody asked for."""

    def __init__(self, what: str, members: Json) -> None:
        self._what = what
        if not isinstance(members, dict):
            raise self.wrong(f"is {_shown(members)}, not an object")
        self._members = dict(members)

    def wrong(self, why: str) -> RecordMalformed:
        return RecordMalformed(what=self._what, why=why)

    def left(self) -> dict[str, Json]:
        return self._members

    def integer(self, name: str, minimum: int = 0, maximum: int = INT64_MAX) -> int:
        return self._in_range(name, self._take(name), minimum, maximum)

    def optional_integer(self, name: str, minimum: int = 0, maximum: int = INT64_MAX) -> int | None:
        value = self._members.pop(name, None)
        return None if value is None else self._in_range(name, value, minimum, maximum)

    def text(self, name: str) -> str:
        value = self._take(name)
        if not isinstance(value, str):
            raise self.wrong(f"{name} is {_shown(value)}, not a text")
        return value

    def optional_text(self, name: str) -> str | None:
        if self._members.get(name) is not None:
            return self.text(name)
        self._members.pop(name, None)
        return None

    def truth(self, name: str) -> bool:
        value = self._take(name)
        if not isinstance(value, bool):
            raise self.wrong(f"{name} is {_shown(value)}, neither true nor false")
        return value

    def pairs(self, name: str, maxima: tuple[int, int]) -> tuple[tuple[int, int], ...]:
        """A list of pairs of integers, each at least 0."""
        pairs = []
        for pair in self.items(name):
            if not isinstance(pair, list) or len(pair) != 2:
                raise self.wrong(f"{name} holds {_shown(pair)}, not a pair")
            first, second = (
                self._in_range(name, value, 0, high) for value, high in zip(pair, maxima, strict=True)
            )
            pairs.append((first, second))
        return tuple(pairs)

    def items(self, name: str) -> list[Json]:
        value = self._take(name)
        if not isinstance(value, list):
            raise self.wrong(f"{name} is {_shown(value)}, not a list")
        return value

    def optional_items(self, name: str) -> list[Json]:
        return self.items(name) if self._members.get(name) is not None else []

    def inner(self, name: str) -> Fields:
        return Fields(f"{self._what}, {name}", self._take(name))

    def optional_inner(self, name: str) -> Fields | None:
        value = self._members.pop(name, None)
        return None if value is None else Fields(f"{self._what}, {name}", value)

    def _take(self, name: str) -> Json:
        value = self._members.pop(name, _MISSING)
        if value is _MISSING:
            raise self.wrong(f"{name} is missing")
        return value

    def _in_range(self, name: str, value: Json, minimum: int, maximum: int) -> int:
        if type(value) is not int:
            raise self.wrong(f"{name} is {_shown(value)}, not an integer")
        if not minimum <= value <= maximum:
            raise self.wrong(f"{name} is {_shown(value)}, not in [{minimum}, {maximum}]")
        return value


def _shown(value: Json) -> str:
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
