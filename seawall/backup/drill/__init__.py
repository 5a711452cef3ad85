"""A drill: a sample is restored into a scratch topic, consumed, and held against the copy, record by record.

    chosen     one piece of each log, by a seed, as long as the budget lasts: a year of drills sees them all
    compare    what a consumer of the scratch topic is given, against what the copy has
    kept       a line a drill in <state dir>/drills.jsonl, signed as reports are

Owns the choice, the comparison and the record. Refuses to call a drill good of which nothing was compared.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path

from backup.plan.values import Piece
from backup.report import signed
from tiering.log.batch import Record

DRILLS_NAME = "drills.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drilled:
    """What came of one sample. `wrong`: the first record that differs, in words; None: all are the same."""

    topic: str
    partition: int
    start: int
    end: int
    segment_id: str
    scratch_topic: str
    records: int
    wrong: str | None
    at_ms: int
    took_ms: int

    @property
    def is_good(self) -> bool:
        return self.wrong is None and self.records > 0


def chosen(pieces: Sequence[Piece], seed: str, budget_bytes: int | None) -> Piece | None:
    """One of the pieces, the same for the same seed; None if none fits the budget."""
    fitting = [each for each in pieces if budget_bytes is None or each.size_bytes <= budget_bytes]

    def lot(piece: Piece) -> bytes:
        return hashlib.sha256(f"{seed}:{piece.record.segment_id}".encode()).digest()

    return min(fitting, key=lot, default=None)


def compare(wanted: Iterable[Record], found: Iterable[Record]) -> tuple[int, str | None]:
    """How many were the same, and the first that was not. Offsets are the scratch topic's own."""
    count = 0
    for one, other in zip_longest(wanted, found):
        if one is None or other is None:
            what = "one more than the copy has" if one is None else f"none for offset {one.offset}"
            return count, f"the scratch topic has {what}"
        said = (one.timestamp_ms, one.key, one.value, one.headers)
        if said != (other.timestamp_ms, other.key, other.value, other.headers):
            return count, f"the record of offset {one.offset} is another"
        count += 1
    return count, None


def keep(folder: Path, drilled: Iterable[Drilled], key: bytes) -> None:
    """One line each, on the disk when this returns."""
    with (folder / DRILLS_NAME).open("a", encoding="ascii") as file:
        for line in _lines(drilled, key):
            file.write(line)
        file.flush()
        os.fsync(file.fileno())


def _lines(drilled: Iterable[Drilled], key: bytes) -> Iterator[str]:
    for each in drilled:
        yield json.dumps(json.loads(signed(asdict(each), key))) + "\n"
