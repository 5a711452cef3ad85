"""Was anything lost or overtaken? Judged by what was written, what handlers did and what was committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from workers.consumer.records import Record
from workers.testing.broker import Identity, MemoryBroker, identity
from workers.testing.journal import Act, Journal


def finished(journal: Journal, letters: Iterable[Record] = ()) -> set[Identity]:
    """Records that somebody is done with; `letters` are those in the dead letter topic."""
    done = {identity(entry.record) for entry in journal.entries if entry.act is Act.DONE}
    return done | {identity(record) for record in letters}


def assert_no_loss(broker: MemoryBroker, journal: Journal, letters: Iterable[Record] = ()) -> None:
    """Whatever is there below a committed offset was finished: a crash now would lose nothing."""
    dealt_with = finished(journal, letters)
    for partition, log in broker.logs.items():
        point = broker.committed(partition)
        committed = point.offset if point else 0
        skipped = [
            offset
            for offset, record in log.records.items()
            if offset < committed and identity(record) not in dealt_with
        ]
        assert not skipped, f"{partition}: {committed} is committed past the unfinished {skipped}"


def assert_all_handled(broker: MemoryBroker, journal: Journal, letters: Iterable[Record] = ()) -> None:
    """Whatever was written and is there was finished."""
    dealt_with = finished(journal, letters)
    there = (record for log in broker.logs.values() for record in log.records.values())
    left = [f"{record.partition}@{record.offset}" for record in there if identity(record) not in dealt_with]
    assert not left, f"never finished: {left}"


def assert_key_order(broker: MemoryBroker, journal: Journal) -> None:
    """No record of a key began before all before it were finished, or beside another one in its process.

    Repeats may go back, and never skip.

    A record that is removed counts as overtaken by nobody. Two processes may hold a key at once only when one
    of them was expelled or ran out of time in a rebalance.
    """
    order: dict[object, list[Identity]] = {}
    for record in broker.written:
        order.setdefault((record.partition, record.key), []).append(identity(record))
    removed = set().union(*(log.removed for log in broker.logs.values()))
    passed: set[Identity] = set()
    running: dict[tuple[str, object], Identity] = {}
    for entry in journal.entries:
        record, me = entry.record, identity(entry.record)
        key = (record.partition, record.key)
        if record.key is None:
            continue
        if entry.act is Act.BEGIN:
            beside = running.get((entry.member, key))
            assert beside is None, f"{me} began beside {beside} in {entry.member}"
            running[entry.member, key] = me
            before = order[key][: order[key].index(me)]
            skipped = [each for each in before if each not in passed and each not in removed]
            assert not skipped, f"{me} began before {skipped}"
        else:
            running.pop((entry.member, key), None)
            if entry.act in {Act.DONE, Act.LETTER}:
                passed.add(me)


def repeats(journal: Journal) -> int:
    """How often a record that was done was begun once more."""
    done: set[Identity] = set()
    again: Counter[Identity] = Counter()
    for entry in journal.entries:
        me = identity(entry.record)
        if entry.act is Act.DONE:
            done.add(me)
        elif entry.act is Act.BEGIN and me in done:
            again[me] += 1
    return again.total()
