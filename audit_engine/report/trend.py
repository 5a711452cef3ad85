"""Past runs drawn: a bar a run, the share of each verdict from bottom to top, the newest on the right.

A single log among ten thousand that does not pass is seen all the same: what is not nothing has a least
height.

Owns the drawing. Invariant: a run that judged no log has no bar that looks like one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from audit_engine.report.markup import Markup, tag
from audit_engine.report.values import WORST_FIRST, Row
from audit_engine.report.words import VERDICT_WORDS, day, number, things, time

HEIGHT, BAR_TOP = 120.0, 4.0
LEAST = 5.0  # pixels of a verdict that some log has
WIDTHS = {"wide": 880, "narrow": 326}
BARS_MAX = {"wide": 60, "narrow": 22}
PITCH_MAX = 30.0


def bars(runs: Sequence[Row], size: str) -> Markup:
    """`size`: wide or narrow, as the style shows one or the other."""
    shown, width = list(runs)[-BARS_MAX[size] :], WIDTHS[size]
    pitch = min(PITCH_MAX, width / max(len(shown), 1))
    end = len(shown) * pitch
    return tag(
        "svg",
        tag("title", "Verdicts of past runs", id=f"trend-{size}"),
        tag("line", x1=0, x2=f"{end:g}", y1=HEIGHT + 0.5, y2=HEIGHT + 0.5, class_="axis"),
        *(_bar(each, at * pitch, pitch * 0.74) for at, each in enumerate(shown)),
        *_labels(shown, end),
        class_=f"picture {size}",
        viewBox=f"0 0 {width} {HEIGHT + 20:g}",
        width=width,
        height=f"{HEIGHT + 20:g}",
        role="img",
        aria_labelledby=f"trend-{size}",
    )


def heights(verdicts: dict[str, int]) -> dict[str, float]:
    """Pixels of each verdict, the worst first; together the bar."""
    total = sum(verdicts.values())
    if not total:
        return {}
    room = HEIGHT - BAR_TOP
    present = [each for each in WORST_FIRST if verdicts.get(each)]
    found = {each: max(LEAST, room * verdicts[each] / total) for each in present}
    largest = max(found, key=lambda each: found[each])
    found[largest] -= sum(found.values()) - room
    return found


def _bar(run: Row, x: float, width: float) -> Markup:
    verdicts = {str(name): int(logs) for name, logs in run["counts"]["verdicts"].items()}
    told = [f"{number(verdicts[each])} {VERDICT_WORDS[each]}" for each in WORST_FIRST if verdicts.get(each)]
    words = ", ".join(told) or "nothing was judged"
    parts = [tag("title", f"Run {run['run']}, {day(run['as_of_ms'])}: {words}")]
    y = BAR_TOP
    for verdict, height in heights(verdicts).items():
        parts.append(_box(x, y, width, height - 1, verdict.lower()))
        y += height
    if not told:
        parts.append(_box(x + 0.5, BAR_TOP, width - 1, HEIGHT - BAR_TOP, "none"))
    return tag("g", *parts)


def _box(x: float, y: float, width: float, height: float, sort: str) -> Markup:
    return tag(
        "rect", x=f"{x:.1f}", y=f"{y:.1f}", width=f"{width:.1f}", height=f"{height:.1f}", class_=f"bar {sort}"
    )


def _labels(runs: Sequence[Row], end: float) -> Iterator[Markup]:
    """The first day and the last, where both have room."""
    y = f"{HEIGHT + 15:g}"
    if runs and end > 110:
        yield tag("text", day(runs[-1]["as_of_ms"]), x=f"{end:.1f}", y=y, class_="tick", text_anchor="end")
    if runs:
        yield tag("text", day(runs[0]["as_of_ms"]), x=0, y=y, class_="tick")


def runs_table(runs: Sequence[Row]) -> Markup:
    """The same in numbers, the newest first."""
    heads = ("Run", "As of", "Verdict", "Logs", *(each.capitalize() for each in WORST_FIRST), "Events")
    rows = []
    for each in reversed(runs):
        counts = each["counts"]
        cells = [
            tag("td", str(each["run"])),
            tag("td", time(each["as_of_ms"])),
            tag("td", each["verdict"].capitalize(), class_=f"word {each['verdict'].lower()}"),
            tag("td", number(counts["logs"])),
            *(tag("td", number(counts["verdicts"].get(verdict, 0))) for verdict in WORST_FIRST),
            tag("td", number(counts["events"])),
        ]
        rows.append(tag("tr", *cells))
    return tag(
        "table",
        tag("caption", f"The last {things(len(runs), 'run')}", class_="visually-hidden"),
        tag("thead", tag("tr", *(tag("th", each, scope="col") for each in heads))),
        tag("tbody", *rows),
        class_="numbers",
    )
