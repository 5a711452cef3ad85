"""Amounts as people read them, rounded: in files' comments and in tables. Never read back."""

from __future__ import annotations

UNKNOWN = "?"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_TIMES = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def size(size_bytes: float | None) -> str:
    if size_bytes is None:
        return UNKNOWN
    at = 0
    while size_bytes >= 1024 and at < len(_UNITS) - 1:
        size_bytes /= 1024
        at += 1
    return (
        f"{size_bytes:.0f} {_UNITS[at]}" if at == 0 or size_bytes >= 100 else f"{size_bytes:.1f} {_UNITS[at]}"
    )


def age(ms: float | None) -> str:
    if ms is None:
        return UNKNOWN
    for unit, length_ms in _TIMES:
        if ms >= length_ms:
            return f"{ms / length_ms:.1f} {unit}".replace(".0 ", " ")
    return f"{ms:.0f} ms"


def count(number: float | None) -> str:
    return UNKNOWN if number is None else f"{number:,.0f}"


def things(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"
