"""A log as one line of characters: each stands for a share of its offsets, and for the worst in that share.

    #  on the broker and in the tier     =  in the tier alone     -  on the broker alone
    ~  a gap that is on record           !  missing: nowhere, and nobody has said so

Owns the drawing. Colour only repeats what the characters say.

Invariant: whatever a log has anywhere is to be seen, however small it is, as far as there is room; what is
lost is always to be seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.text import Text

from seawall.tier.coverage import Stretch, Where

MARKS: Mapping[Where, tuple[str, str, str]] = {  # character, style, what the legend says
    Where.BOTH: ("#", "green", "broker and tier"),
    Where.TIERED: ("=", "cyan", "tier only"),
    Where.LOCAL: ("-", "yellow", "broker only"),
    Where.GAP: ("~", "magenta", "gap on record"),
    Where.MISSING: ("!", "bold red", "missing"),
}
LOST = (Where.MISSING, Where.GAP)


def bar(found: Sequence[Stretch], width: int) -> Text:
    """The stretches of a log in `width` characters; none for an empty log."""
    if not found:
        return Text("(empty)", style="dim")
    start, size = found[0].start, found[-1].end - found[0].start
    cells = min(width, size)  # an offset never takes two characters
    shares = [Counter[Where]() for _ in range(cells)]
    for each in found:
        first = (each.start - start) * cells // size
        last = ((each.end - start) * cells - 1) // size
        for cell in range(first, last + 1):
            begins, ends = start * cells + cell * size, start * cells + (cell + 1) * size
            shares[cell][each.where] += min(each.end * cells, ends) - max(each.start * cells, begins)
    chosen = [_of(share) for share in shares]
    _show_all(chosen, shares)
    line = Text()
    for where in chosen:
        character, style, _ = MARKS[where]
        line.append(character, style=style)
    return line


def legend() -> Text:
    line = Text()
    for character, style, meaning in MARKS.values():
        line.append(character, style=style).append(f" {meaning}   ")
    line.rstrip()
    return line


def _of(share: Counter[Where]) -> Where:
    """What is lost, else what there is most of."""
    lost = next((where for where in LOST if share[where]), None)
    return lost if lost is not None else share.most_common(1)[0][0]


def _show_all(chosen: list[Where], shares: Sequence[Counter[Where]]) -> None:
    """Give a kind that is nowhere to be seen the cell that has most of it, unless something is lost there."""
    for where in sorted({each for share in shares for each in share} - set(chosen)):
        free = [cell for cell, kept in enumerate(chosen) if shares[cell][where] and kept not in LOST]
        free = [cell for cell in free if chosen.count(chosen[cell]) > 1]
        if free:
            chosen[max(free, key=lambda cell: shares[cell][where])] = where
