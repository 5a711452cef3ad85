"""What the other agents' tables hold of a log, as they last said it in `tier_state`: trim's port.

Owns the value and the port; who hears the agents is above this package. Refuses to compare: equal digests
mean something only at equal offsets, and that is `local`'s to see.

Invariant: what was forgotten, or was never heard, is missing; and what is missing keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from rules.identity import LogId


class Said(NamedTuple):
    """One broker's table of one log, at one offset of the metadata topic. `digest`: 64 hexadecimal digits.

    Agents say only what is comparable (`LogDigest.comparable`).
    """

    metadata_offset: int
    digest: str


class Digests(Protocol):
    """Knows what was said last."""

    def of(self, log: LogId) -> Mapping[int, Said]:
        """By broker, this agent's own among them or not."""
