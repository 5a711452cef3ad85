"""What became of a replica's segments between two looks at one directory: a pure comparison.

    before            after             what it is
    0 10 20           10 20             a prefix went: [0,10)
    0 10 20           0 10 20 30        20 was closed at 30
    0 10 20           0 20              a middle one went; if the log is compacted, or its neighbour was
                                        rewritten, the cleaner merged it
    0 10 20           0 10              truncated, into 10
    0 10 20           0 10 15           truncated, into 10, and rolled again since
    0 10 20           50                all went, a new one was begun. Where the old ones' records end at 50,
                                        retention took them; where they end before, the broker emptied the
                                        replica, to begin at its leader's start (AUDIT_FACTS 4)
    10 20             8                 emptied: what was before says nothing about what is now

Owns the comparison. Refuses to tell why.

Invariant: a base offset is made only at the end of a log. One that appears below an end that was seen before
is a truncation, never a roll.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from audit_engine.observers.disk.seen import Piece, Replica


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """`cut_at`: the base of the segment into which it was truncated; None: it was not."""

    emptied: bool = False
    deleted: tuple[Piece, ...] = ()  # closed, or with the end that can be told
    swapped: tuple[Piece, ...] = ()
    closed: tuple[Piece, ...] = ()
    cut_at: int | None = None


NOTHING = Changes()


def compare(
    was: Sequence[Piece],
    now: Sequence[Piece],
    *,
    is_compacted: bool,
    filled_to: Callable[[int], int | None],
) -> Changes:
    """`filled_to`: where the data of the removed files below an offset ends; None: they cannot be read."""
    if not was:
        return Changes(closed=_closed(now))
    if not now:
        return Changes(deleted=_all_of(was, None))
    old = {each.base_offset: each for each in was}
    new = {each.base_offset: each for each in now}
    kept = sorted(old.keys() & new.keys())
    if not kept:
        return _nothing_kept(was, now, filled_to)
    torn = _torn(old, new, was[-1].base_offset, now[-1].base_offset)
    cut_at = _cut(old, new, kept, torn)
    first = now[0].base_offset
    gone = [each for each in was if each.base_offset not in new and (torn is None or each.base_offset < torn)]
    prefix = [each for each in gone if each.base_offset < first]
    inside = [each for each in gone if each.base_offset > first]
    merged = [each for each in inside if is_compacted or _rewritten_below(each.base_offset, kept, old, new)]
    missing = [each for each in inside if each not in merged]
    return Changes(
        deleted=tuple(prefix + missing),
        swapped=tuple(merged),
        closed=tuple(
            each
            for each in now
            if each.end_offset is not None and _is_news(each, old.get(each.base_offset), cut_at, is_compacted)
        ),
        cut_at=cut_at,
    )


def _nothing_kept(
    was: Sequence[Piece], now: Sequence[Piece], filled_to: Callable[[int], int | None]
) -> Changes:
    first = now[0].base_offset
    if first <= was[-1].base_offset:
        return Changes(emptied=True)
    filled = filled_to(first)
    # Where the files are gone too: an empty log was begun elsewhere, a full one was deleted.
    emptied = len(was) == 1 and was[0].size_bytes == 0 if filled is None else filled < first
    if emptied:
        return Changes(emptied=True)
    return Changes(deleted=_all_of(was, first), closed=_closed(now))


def _all_of(was: Sequence[Piece], end: int | None) -> tuple[Piece, ...]:
    """Each of them, the active one up to `end`: what was rolled meanwhile went with it."""
    return tuple(each._replace(end_offset=end) if each.end_offset is None else each for each in was)


def _closed(now: Sequence[Piece]) -> tuple[Piece, ...]:
    return tuple(each for each in now if each.end_offset is not None)


def _torn(old: dict[int, Piece], new: dict[int, Piece], last_was: int, last_now: int) -> int | None:
    """The lowest base that shows a truncation: it went from the end, or came below the end."""
    went = [base for base in old.keys() - new.keys() if base > last_now]
    came = [base for base in new.keys() - old.keys() if min(old) < base < last_was]
    return min(went + came, default=None)


def _cut(old: dict[int, Piece], new: dict[int, Piece], kept: list[int], torn: int | None) -> int | None:
    if torn is not None:
        return max((base for base in kept if base < torn), default=torn)
    [*_, last] = kept
    is_active = old[last].end_offset is None and new[last].end_offset is None
    return last if is_active and new[last].size_bytes < old[last].size_bytes else None


def _rewritten_below(base: int, kept: list[int], old: dict[int, Piece], new: dict[int, Piece]) -> bool:
    below = [each for each in kept if each < base]
    return bool(below) and old[below[-1]].size_bytes != new[below[-1]].size_bytes


def _is_news(each: Piece, known: Piece | None, cut_at: int | None, is_compacted: bool) -> bool:
    """Whether it is to be said closed. An end that moves on by itself is the hole behind it, and no news."""
    if known is None or known.end_offset is None or known.size_bytes != each.size_bytes:
        return True
    may_move = is_compacted or (cut_at is not None and each.base_offset >= cut_at)
    return may_move and known.end_offset != each.end_offset


def is_same(known: Replica, now: Replica) -> bool:
    """Whether nothing is there to compare. A watermark that rose is told in its own time."""
    if known.held_looks or known.last_seen_ms is not None:
        return False
    return (
        known.log_start == now.log_start
        and known.epochs == now.epochs
        and len(known.pieces) == len(now.pieces)
        and known.pieces[:-1] == now.pieces[:-1]
        and [each[:2] for each in known.pieces[-1:]] == [each[:2] for each in now.pieces[-1:]]
        and all(a.size_bytes <= b.size_bytes for a, b in zip(known.pieces[-1:], now.pieces[-1:], strict=True))
    )


def kept_as_known(known: Replica, now: tuple[Piece, ...], changes: Changes) -> tuple[Piece, ...]:
    """A closed segment stays what it was said to be, also when the one behind it went and left a hole."""
    said = {each.base_offset for each in changes.closed}
    was = {each.base_offset: each for each in known.pieces if each.end_offset is not None}
    return tuple(
        was[each.base_offset]
        if each.end_offset is not None and each.base_offset in was and each.base_offset not in said
        else each
        for each in now
    )
