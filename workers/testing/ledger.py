"""What handlers of several processes did, in one file: for real brokers, and processes that are killed.

A line is one write to a file opened for appending, so all lines are whole and in their order:

    BEGIN|END  process  partition  offset  key in hex  CLOCK_MONOTONIC in ns, which all processes share
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.consumer.records import Record


class Ledger:
    """One process's hold on the file."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._me = os.getpid()

    def begin(self, record: Record) -> None:
        self._note("BEGIN", record)

    def end(self, record: Record) -> None:
        self._note("END", record)

    def _note(self, act: str, record: Record) -> None:
        number, key = record.partition.number, (record.key or b"").hex() or "-"
        line = f"{act} {self._me} {number} {record.offset} {key} {time.monotonic_ns()}\n"
        os.write(self._file, line.encode())


@dataclass(frozen=True, slots=True)
class Line:
    act: str
    process: int
    place: tuple[int, int]  # partition and offset
    key: str
    at_ns: int


def read(path: Path) -> list[Line]:
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines():
        act, process, number, offset, key, at_ns = line.split()
        found.append(Line(act, int(process), (int(number), int(offset)), key, int(at_ns)))
    return found


def ended(lines: Sequence[Line]) -> set[tuple[int, int]]:
    return {line.place for line in lines if line.act == "END"}


def repeats(lines: Sequence[Line]) -> tuple[int, int]:
    """How often a record was begun again: that was ended before, and that was not."""
    done: set[tuple[int, int]] = set()
    begun: Counter[tuple[int, int]] = Counter()
    after_end = after_begin = 0
    for line in lines:
        if line.act == "END":
            done.add(line.place)
        else:
            after_end += line.place in done
            after_begin += line.place not in done and begun[line.place] > 0
            begun[line.place] += 1
    return after_end, after_begin


def took_s(lines: Sequence[Line]) -> float:
    """From the first begin to the last end."""
    return (max(line.at_ns for line in lines) - min(line.at_ns for line in lines)) / 1e9


def assert_keys_in_order(lines: Sequence[Line], *, killed: frozenset[int] = frozenset()) -> None:
    """No record of a key began before those before it had ended, or beside one of a living process."""
    order: dict[tuple[int, str], list[int]] = {}
    for number, offset, key in sorted({(*line.place, line.key) for line in lines}):
        order.setdefault((number, key), []).append(offset)
    done: set[tuple[int, int]] = set()
    running: dict[tuple[int, str], Line] = {}
    for line in lines:
        number, offset = line.place
        lane = (number, line.key)
        if line.act == "END":
            done.add(line.place)
            if lane in running and running[lane].process == line.process:
                del running[lane]
            continue
        skipped = [each for each in order[lane] if each < offset and (number, each) not in done]
        assert not skipped, f"{line} began before {skipped} had ended"
        beside = running.get(lane)
        assert beside is None or beside.process in killed, f"{line} began beside {beside}"
        running[lane] = line
