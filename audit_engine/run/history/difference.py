"""Two judgements of the same evidence, held against each other.

    only_here    found by this one alone, or open here and not there
    only_there   the reverse
    otherwise    found by both, with another severity, range or standing

Owns the comparison, by finding id. Invariant: equal judgements differ in nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Told = Mapping[str, Any]
COMPARED = ("status", "severity", "ranges", "suppressed_by")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    only_here: tuple[Told, ...]
    only_there: tuple[Told, ...]
    otherwise: tuple[tuple[Told, Told], ...]  # here, there

    @property
    def is_none(self) -> bool:
        return not (self.only_here or self.only_there or self.otherwise)


def difference(here: Iterable[Told], there: Iterable[Told]) -> Difference:
    """What was found and is withdrawn was not found."""
    ours, theirs = _by_id(here), _by_id(there)
    both = sorted(ours.keys() & theirs.keys())
    return Difference(
        only_here=tuple(ours[each] for each in sorted(ours.keys() - theirs.keys())),
        only_there=tuple(theirs[each] for each in sorted(theirs.keys() - ours.keys())),
        otherwise=tuple(
            (ours[each], theirs[each])
            for each in both
            if any(ours[each][name] != theirs[each][name] for name in COMPARED)
        ),
    )


def _by_id(findings: Iterable[Told]) -> dict[str, Told]:
    return {each["finding_id"]: each for each in findings if each["status"] != "withdrawn"}


def in_period(findings: Iterable[Told], from_ms: int, to_ms: int) -> list[Told]:
    """Those that opened in `[from_ms, to_ms]`, ended in it, or stood throughout."""
    return [
        each
        for each in findings
        if each["opened_ms"] <= to_ms and (each["ended_ms"] is None or each["ended_ms"] >= from_ms)
    ]
