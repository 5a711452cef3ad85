"""Why a policy is refused: every problem of it at once, each with the table and the key that it stands in.

Owns the words for problems. Which file a policy stands in is known to whoever read the file: it puts the
file's name in front.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field

NEAREST_RATIO = 0.6  # below it, a suggestion is more puzzling than none


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """`table` and `key` are None where the problem is not one table's, or not one key's.

    `example` is a topic that it concerns; the same problem with another example is the same problem.
    """

    what: str
    table: str | None = None
    key: str | None = None
    example: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        where = " ".join(part for part in (self.table, f"`{self.key}`" if self.key else None) if part)
        example = f" (as for a topic named {self.example})" if self.example else ""
        return f"{where}: {self.what}{example}" if where else f"{self.what}{example}"


class PolicyRefused(Exception):
    """A policy that cannot be followed. It is refused as a whole: no part of it is in force."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(dict.fromkeys(problems))
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def table_of(pattern: str) -> str:
    """The table as it stands in the file. TOML's basic strings are written as JSON's."""
    return f"[topics.{json.dumps(pattern, ensure_ascii=False)}]"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was most likely meant."""

    def likeness(candidate: str) -> float:
        whole = difflib.SequenceMatcher(None, _plain(name), candidate).ratio()
        # `retention.ms`, as Kafka has it, is part of a longer name of ours.
        inside = 0.8 if _plain(name) and _plain(name) in candidate else 0.0
        return max(whole, inside)

    best = max(known, key=likeness, default=None)
    return best if best is not None and likeness(best) >= NEAREST_RATIO else None


def _plain(name: str) -> str:
    return name.lower().replace(".", "_").replace("-", "_")
