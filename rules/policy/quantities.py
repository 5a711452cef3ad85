"""Lengths of time and amounts of bytes, as people write them: "7d", "50GiB", "unlimited", or plain numbers.

Owns the units. A plain number is in the unit that the key's name ends with. Refuses fractions, and "m", which
half of the world reads as months.

Invariant: what `write_*` gives, `read_*` takes back to the same value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Final, TypeAlias

LARGEST = 2**63 - 1  # Kafka's own settings are signed 64-bit numbers


class Unlimited(Enum):
    """Not a number, so that nobody subtracts Kafka's -1 from a clock."""

    UNLIMITED = "unlimited"


UNLIMITED: Final = Unlimited.UNLIMITED
Limit: TypeAlias = int | Unlimited

# Largest first. A unit's written form is its only one: "Gb" could be gigabits.
TIME_UNITS: Mapping[str, int] = {
    "w": 7 * 24 * 3_600_000,
    "d": 24 * 3_600_000,
    "h": 3_600_000,
    "min": 60_000,
    "s": 1_000,
    "ms": 1,
}
BYTE_UNITS: Mapping[str, int] = {
    "PiB": 2**50,
    "PB": 10**15,
    "TiB": 2**40,
    "TB": 10**12,
    "GiB": 2**30,
    "GB": 10**9,
    "MiB": 2**20,
    "MB": 10**6,
    "KiB": 2**10,
    "kB": 10**3,
    "B": 1,
}
# What is written: weeks are left out, as retention of 30 days should not come back as days and 14 as weeks.
_WRITTEN_TIME = tuple(unit for unit in TIME_UNITS if unit != "w")
_WRITTEN_BYTES = tuple(unit for unit in BYTE_UNITS if unit.endswith("iB"))
_QUANTITY = re.compile(r"(\d{1,19}) ?([A-Za-z]+)")


def read_time(raw: object) -> int:
    """Milliseconds; ValueError says what is allowed, in words that fit after "must be"."""
    return _read(raw, TIME_UNITS, 'a length of time such as "7d" ({units}), or a number of milliseconds')


def read_bytes(raw: object) -> int:
    return _read(raw, BYTE_UNITS, 'an amount such as "50GiB" ({units}), or a number of bytes')


def write_time(value: int) -> str:
    return _write(value, TIME_UNITS, _WRITTEN_TIME, smallest="ms")


def write_bytes(value: int) -> str:
    return _write(value, BYTE_UNITS, _WRITTEN_BYTES, smallest="B")


def is_unlimited(raw: object) -> bool:
    """-1 is how Kafka's own settings say it."""
    return raw == UNLIMITED.value or (type(raw) is int and raw == -1)


def at_most(left: Limit, right: Limit) -> bool:
    """Whether what is kept under `left` is kept under `right` too."""
    if right is UNLIMITED:
        return True
    return left is not UNLIMITED and left <= right


def _read(raw: object, units: Mapping[str, int], allowed: str) -> int:
    value: int | None = None
    if type(raw) is int:  # True is an int, too
        value = raw
    elif isinstance(raw, str) and (parts := _QUANTITY.fullmatch(raw)) is not None and parts[2] in units:
        value = int(parts[1]) * units[parts[2]]
    if value is None or not 0 <= value <= LARGEST:
        raise ValueError(allowed.format(units=" ".join(reversed([*units]))))
    return value


def _write(value: int, units: Mapping[str, int], written: tuple[str, ...], *, smallest: str) -> str:
    unit = next((unit for unit in written if value >= units[unit] and value % units[unit] == 0), smallest)
    return f"{value // units[unit]}{unit}"
