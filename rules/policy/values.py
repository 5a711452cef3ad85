"""The kinds of values that a policy declares, each with how it is read from TOML or JSON and written back.

Owns types and forms, and no key: `keys` says which key takes which. Readers raise ValueError with what is
allowed, in words that fit after "must be".

Invariant: what a form writes, it reads back to the same value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from rules.policy import quantities
from rules.policy.quantities import UNLIMITED, Unlimited
from rules.policy.suppressions import ALLOWED, read_line

ANYONE = "*"
NAME_MAX = 200


class Permission(str, Enum):
    """Whether what would destroy data may be done on request."""

    FREE = "free"  # by whoever Kafka lets, unasked: Kafka Streams deletes records all day
    AUTHORISED = "authorised"  # with a declared principal and change id
    NEVER = "never"


Value: TypeAlias = bool | int | Unlimited | Permission | tuple[str, ...]
Plain: TypeAlias = bool | int | str | list[str]  # as in TOML and JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How a kind of value is written. `plain` is for machines, `human` for files and screens."""

    read: Callable[[object], Value]
    plain: Callable[[Value], Plain]
    human: Callable[[Value], Plain]


def is_name(text: str) -> bool:
    """Whether it can be a principal or a change id: it stands in files, in reports and on terminals."""
    return 0 < len(text) <= NAME_MAX and text.isprintable() and text == text.strip()


def _plain(value: Value) -> Plain:
    if isinstance(value, Enum):
        return str(value.value)
    return list(value) if isinstance(value, tuple) else value


def _read_flag(raw: object) -> Value:
    if not isinstance(raw, bool):
        raise ValueError("true or false")
    return raw


def _read_permission(raw: object) -> Value:
    for permission in Permission:
        if raw == permission.value:
            return permission
    raise ValueError(f"one of {', '.join(permission.value for permission in Permission)}")


def _read_principals(raw: object) -> Value:
    allowed = 'a list of names such as ["alice", "team-payments"], or ["*"] for anyone'
    if not isinstance(raw, list) or not all(isinstance(name, str) and is_name(name) for name in raw):
        raise ValueError(allowed)
    if len(set(raw)) < len(raw) or (ANYONE in raw and len(raw) > 1):
        raise ValueError(f"{allowed}; each once, and * alone")
    return tuple(sorted(raw))


def _read_suppressions(raw: object) -> Value:
    if not isinstance(raw, list) or not all(isinstance(line, str) for line in raw):
        raise ValueError(f"a list of texts, each {ALLOWED}")
    lines = tuple(sorted(read_line(line).text for line in raw))
    if len(set(lines)) < len(lines):
        raise ValueError(f"{ALLOWED}, each once")
    return lines


def whole(least: int, most: int) -> Form:
    def read(raw: object) -> Value:
        if type(raw) is not int or not least <= raw <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return raw

    return Form(read=read, plain=_plain, human=_plain)


def _quantity(
    read: Callable[[object], int], write: Callable[[int], str], *, least: int, or_unlimited: bool
) -> Form:
    def read_quantity(raw: object) -> Value:
        if or_unlimited and quantities.is_unlimited(raw):
            return UNLIMITED
        more = ', or "unlimited"' if or_unlimited else ""
        try:
            value = read(raw)
        except ValueError as refused:
            raise ValueError(f"{refused}{more}") from None
        if value < least:
            raise ValueError(f"at least {write(least)}{more}")
        return value

    def human(value: Value) -> Plain:
        return write(value) if type(value) is int else _plain(value)

    return Form(read=read_quantity, plain=_plain, human=human)


FLAG = Form(read=_read_flag, plain=_plain, human=_plain)
PERMISSION = Form(read=_read_permission, plain=_plain, human=_plain)
SUPPRESSIONS = Form(read=_read_suppressions, plain=_plain, human=_plain)
PRINCIPALS = Form(read=_read_principals, plain=_plain, human=_plain)
TIME = _quantity(quantities.read_time, quantities.write_time, least=0, or_unlimited=False)
INTERVAL = _quantity(quantities.read_time, quantities.write_time, least=60_000, or_unlimited=False)
RETENTION_TIME = _quantity(quantities.read_time, quantities.write_time, least=1, or_unlimited=True)
RETENTION_BYTES = _quantity(quantities.read_bytes, quantities.write_bytes, least=1, or_unlimited=True)
