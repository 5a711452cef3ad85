"""How a log's start and its high watermark went, run by run: what each run stated of the log, drawn as steps.

A watermark only rises and a start only rises: a step down is what the picture is for. Of the time between
two runs nothing is known, so that a step stands at the later one.

Owns the drawing. Refuses to draw what one run alone says. Invariant: equal courses give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from audit_engine.report.markup import Markup, tag
from audit_engine.report.values import Moment
from audit_engine.report.words import day, number, things

WIDTHS = {"wide": 880, "narrow": 326}
HEIGHT, TOP = 96.0, 6.0
LEAST = 2  # runs


def course(moments: Sequence[Moment], key: str) -> Markup | None:
    """`key`: for ids, of which a page has one each."""
    told = [each for each in moments if each.watermark is not None]
    if len(told) < LEAST:
        return None
    return tag(
        "figure",
        tag("figcaption", tag("b", f"The last {things(len(told), 'run')}"), tag("span", _words(told))),
        *(_picture(told, size, key) for size in WIDTHS),
        class_="course",
    )


def _words(told: Sequence[Moment]) -> str:
    parts = [f"High watermark from {_known(told[0].watermark)} to {_known(told[-1].watermark)}"]
    parts.append(f"start from {_known(told[0].start)} to {_known(told[-1].start)}")
    falls = [f"it fell in run {after.run}" for before, after in pairwise(told) if _fell(before, after)]
    return f"{'; '.join([*parts, *falls[:3]])}."


def _fell(before: Moment, after: Moment) -> bool:
    return before.watermark is not None and after.watermark is not None and after.watermark < before.watermark


def _picture(told: Sequence[Moment], size: str, key: str) -> Markup:
    width = WIDTHS[size]
    first_ms, last_ms = told[0].at_ms, told[-1].at_ms
    edges = [each for one in told for each in (one.start, one.watermark) if each is not None]
    low, high = min(edges), max(edges)

    def x(at_ms: int) -> float:
        return 1 + (width - 3) * (at_ms - first_ms) / max(last_ms - first_ms, 1)

    def y(offset: int) -> float:
        return HEIGHT - (HEIGHT - TOP) * (offset - low) / max(high - low, 1)

    def steps(of: Sequence[tuple[int, int | None]]) -> str:
        points: list[tuple[float, float]] = []
        for at_ms, offset in of:
            if offset is None:
                continue
            if points:
                points.append((x(at_ms), points[-1][1]))
            points.append((x(at_ms), y(offset)))
        return " ".join(f"{across:.1f},{down:.1f}" for across, down in points)

    return tag(
        "svg",
        tag("title", "Start and high watermark over past runs", id=f"{key}-{size}-course"),
        tag("line", x1=0, x2=width, y1=HEIGHT + 1.5, y2=HEIGHT + 1.5, class_="axis"),
        tag("polyline", points=steps([(each.at_ms, each.start) for each in told]), class_="line start"),
        tag(
            "polyline", points=steps([(each.at_ms, each.watermark) for each in told]), class_="line watermark"
        ),
        *_ticks(told, width),
        class_=f"picture {size}",
        viewBox=f"0 0 {width} {HEIGHT + 20:g}",
        width=width,
        height=f"{HEIGHT + 20:g}",
        role="img",
        aria_labelledby=f"{key}-{size}-course",
    )


def _ticks(told: Sequence[Moment], width: int) -> Iterator[Markup]:
    y = f"{HEIGHT + 16:g}"
    yield tag("text", day(told[0].at_ms), x=0, y=y, class_="tick")
    if day(told[0].at_ms) != day(told[-1].at_ms):
        yield tag("text", day(told[-1].at_ms), x=width, y=y, class_="tick", text_anchor="end")


def _known(offset: int | None) -> str:
    return "not known" if offset is None else number(offset)
