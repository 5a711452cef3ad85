"""A log drawn: offsets from left to right, a lane for each place that holds some, and what went, across all.

    above    the log's start, its high watermark, the retention line: each a line through all lanes
    lanes    the tier, and each broker's disk
    below    offsets, and when their records were written

Text is laid out by a width that no font of the page exceeds, in rows, so that labels never lie on each other.
What went is a hatched band; a range too small to see is drawn a few pixels wide all the same. Where it is
tiny beside the log, only its surroundings are drawn, and the scale says so.

Owns coordinates. Colours are the page's, by class. Invariant: equal maps give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from audit_engine.report.logmap import Lane, LogMap
from audit_engine.report.markup import Markup, Value, joined, tag
from audit_engine.report.words import clock, day, number, short
from rules.machine.spans import Spans, count, normal

WIDE, NARROW = 880, 326
CHARACTER = 7.8  # pixels that a character takes at most, at 12: of DejaVu Sans Bold, the widest fallback, 7.6
ROW = 17
LANE, LANE_GAP = 20, 16
PIECES_MAX = 300  # of a lane; neighbours beyond it are drawn as one
BAND_MIN, PIECE_MIN = 4.0, 1.0
ZOOM_BELOW = 0.05  # of the log


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From offsets `[low, high)` to pixels `[left, right)`."""

    low: int
    high: int
    left: float
    right: float

    def x(self, offset: int) -> float:
        share = (min(max(offset, self.low), self.high) - self.low) / max(self.high - self.low, 1)
        return self.left + share * (self.right - self.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    x: float
    text: str
    class_: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    label: Label
    left: float
    row: int


def picture(log: LogMap, *, width: int, key: str) -> Markup:
    """`key`: for ids, of which a page has one each."""
    is_narrow = width < 500
    gutter = 0.0 if is_narrow else 148.0
    low, high = window(log)
    scale = Scale(low=low, high=high, left=gutter + 1, right=width - 2.0)
    marks = placed(_marks(log, scale), scale, width)
    top = ROW * (1 + max((each.row for each in marks), default=0)) + 8
    pitch = LANE + (11 + ROW if is_narrow else LANE_GAP)
    bottom = top + len(log.lanes) * pitch + 2
    tracks = [top + at * pitch + (ROW if is_narrow else 0) for at in range(len(log.lanes))]
    # On a narrow page names stand between the lanes: what goes across all lanes leaves them out.
    extents = [(y - 3.0, y + LANE + 3) for y in tracks] if is_narrow else [(top - 4.0, bottom - 2.0)]
    below = list(_axis(log, scale, width, bottom))
    return tag(
        "svg",
        _texts(log, key),
        _patterns(key),
        *(_track(scale, y) for y in tracks),
        *(one for low, high in extents for one in _bands(log, scale, low, high, key)),
        *(
            _lane(lane, scale, top + at * pitch, key, is_narrow=is_narrow)
            for at, lane in enumerate(log.lanes)
        ),
        *(one for low, high in extents for one in _lines(log, scale, low, high)),
        *(_text(each.left, ROW * (each.row + 1) - 4, each.label.text, each.label.class_) for each in marks),
        *below,
        class_="picture narrow" if is_narrow else "picture wide",
        viewBox=f"0 0 {width} {bottom + 2 * ROW + 8:g}",
        width=width,
        height=f"{bottom + 2 * ROW + 8:g}",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
    )


def window(log: LogMap) -> tuple[int, int]:
    """All of the log, or the surroundings of what went, where that would not be seen."""
    whole = max(log.high - log.low, 1)
    if not log.went:
        return log.low, log.low + whole
    low, high = log.went[0][0], log.went[-1][1]
    if (high - low) >= ZOOM_BELOW * whole:
        return log.low, log.low + whole
    around = max(4 * (high - low), 10)
    return max(log.low, low - around), min(log.low + whole, high + around)


def placed(labels: Iterable[Label], scale: Scale, width: float) -> list[Placed]:
    """Each in the first row where it lies on no other, inside the picture."""
    rows: list[float] = []
    out: list[Placed] = []
    for label in sorted(labels, key=lambda each: (each.x, each.text)):
        size = len(label.text) * CHARACTER
        left = max(scale.left, min(label.x - size / 2, width - size - 2))
        row = next((at for at, reached in enumerate(rows) if reached + 8 <= left), len(rows))
        if row == len(rows):
            rows.append(0.0)
        rows[row] = left + size
        out.append(Placed(label=label, left=left, row=row))
    return out


def _marks(log: LogMap, scale: Scale) -> Iterator[Label]:
    low, high = scale.low, scale.high

    def mark(offset: int, text: str, class_: str) -> Label:
        before, behind = ("← " if offset < low else ""), (" →" if offset > high else "")
        return Label(x=scale.x(offset), text=f"{before}{text}{behind}", class_=class_)

    if log.start is not None:
        yield mark(log.start, f"starts at {short(log.start)}", "mark start")
    if log.watermark is not None:
        yield mark(log.watermark, f"high watermark {short(log.watermark)}", "mark watermark")
    if log.retention is not None and log.retention.offset is not None:
        yield mark(log.retention.offset, log.retention.label, "mark retention")
    if log.went:
        middle = (log.went[0][0] + log.went[-1][1]) // 2
        gone = count(log.went)
        words = f"{short(gone)} affected, a copy is known"
        if log.lost:
            words = f"{short(count(log.lost))} with no known copy"
        yield Label(x=scale.x(middle), text=words, class_="mark went")


def _texts(log: LogMap, key: str) -> Markup:
    lanes = "; ".join(f"{each.name}: {each.note}" for each in log.lanes)
    went = ", ".join(f"from {number(start)} to {number(end)}" for start, end in log.went)
    parts = [
        f"Starts at {number(log.start)}." if log.start is not None else "Its start is not known.",
        f"High watermark {number(log.watermark)}." if log.watermark is not None else "",
        f"Affected: {went}." if went else "",
        f"Of that, {number(count(log.lost))} offsets have no known copy." if log.lost else "",
        log.retention.words if log.retention is not None else "",
        f"{lanes}." if lanes else "",
    ]
    return joined(
        tag("title", f"Offsets of {log.name}", id=f"{key}-title"),
        tag("desc", " ".join(each for each in parts if each), id=f"{key}-desc"),
    )


def _patterns(key: str) -> Markup:
    def hatch(name: str, gap: int) -> Markup:
        line = tag("line", x1=0, y1=0, x2=0, y2=gap, class_=f"hatch-{name}")
        return tag(
            "pattern",
            line,
            id=f"{key}-{name}",
            width=gap,
            height=gap,
            patternUnits="userSpaceOnUse",
            patternTransform="rotate(45)",
        )

    return tag("defs", hatch("went", 7), hatch("dark", 6), hatch("hole", 5))


def _bands(log: LogMap, scale: Scale, y1: float, y2: float, key: str) -> Iterator[Markup]:
    lost = normal(log.lost)
    for start, end in log.went:
        left, width = _extent(scale, start, end, BAND_MIN)
        box: dict[str, Value] = {"x": _n(left), "width": _n(width)}
        box |= {"y": _n(y1), "height": _n(y2 - y1)}
        is_lost = any(low < end and start < high for low, high in lost)
        yield tag("rect", **box, class_="band lost" if is_lost else "band")
        yield tag("rect", **box, fill=f"url(#{key}-went)", class_="band-hatch")


def _lane(lane: Lane, scale: Scale, y: float, key: str, *, is_narrow: bool) -> Markup:
    words = f"{lane.name} · {lane.note}" if is_narrow else lane.name
    name = _text(0, y + (ROW - 7 if is_narrow else LANE - 6), words, "lane-name")
    y += ROW if is_narrow else 0
    parts: list[Markup] = [name]
    if not is_narrow:
        parts[0] = joined(
            _text(0, y + 8, lane.name, "lane-name"),
            _text(0, y + 22, lane.note, "lane-note"),
        )
    if lane.is_dark:
        parts.append(_track(scale, y, fill=f"url(#{key}-dark)", class_="dark"))
    for start, end, sort in _pieces(lane, scale):
        left, size = _extent(scale, start, end, PIECE_MIN)
        seam = 1 if size > 4 else 0
        fill = f"url(#{key}-hole)" if sort == "hole" else None
        box: dict[str, Value] = {"x": _n(left), "y": _n(y + 3), "width": _n(size - seam)}
        parts.append(tag("rect", **box, height=LANE - 6, rx=1.5, fill=fill, class_=f"piece {sort}"))
    return tag("g", *parts, class_="lane")


def _track(scale: Scale, y: float, *, fill: str | None = None, class_: str = "track") -> Markup:
    width = _n(scale.right - scale.left)
    return tag("rect", x=_n(scale.left), y=_n(y), width=width, height=LANE, rx=3, fill=fill, class_=class_)


def _pieces(lane: Lane, scale: Scale) -> Iterator[tuple[int, int, str]]:
    """Inside the window; more than can be told apart, as one."""
    inside = [each for each in lane.pieces if each.end > scale.low and each.start < scale.high]
    is_many = len(inside) > PIECES_MAX
    held: tuple[int, int, str] | None = None
    for each in inside:
        start, end = max(each.start, scale.low), min(each.end, scale.high)
        if held is not None and is_many and held[2] == each.sort and start <= held[1]:
            held = (held[0], max(held[1], end), held[2])
            continue
        if held is not None:
            yield held
        held = (start, end, each.sort)
    if held is not None:
        yield held


def _lines(log: LogMap, scale: Scale, y1: float, y2: float) -> Iterator[Markup]:
    lines = [
        (None if log.retention is None else log.retention.offset, "retention"),
        (log.watermark, "watermark"),
        (log.start, "start"),
    ]
    for offset, sort in lines:
        if offset is not None and scale.low <= offset <= scale.high:
            x = _n(scale.x(offset))
            yield tag("line", x1=x, x2=x, y1=_n(y1), y2=_n(y2), class_=f"line {sort}")


def _axis(log: LogMap, scale: Scale, width: float, bottom: float) -> Iterator[Markup]:
    """Offsets, and below them when the records there were written."""
    yield tag("line", x1=_n(scale.left), x2=_n(scale.right), y1=_n(bottom), y2=_n(bottom), class_="axis")
    ticks = ticks_between(scale.low, scale.high, 3 if width < 500 else 7)
    reached = 0.0
    for tick in ticks:
        x = scale.x(tick)
        text = short(tick)
        size = len(text) * CHARACTER
        left = max(scale.left, min(x - size / 2, width - size - 2))
        if left < reached + 10:
            continue
        reached = left + size
        yield tag("line", x1=_n(x), x2=_n(x), y1=_n(bottom), y2=_n(bottom + 4), class_="axis")
        yield _text(left, bottom + ROW, text, "tick")
    yield from _dates(log.times, scale, width, bottom)


def _dates(times: Sequence[tuple[int, int]], scale: Scale, width: float, bottom: float) -> Iterator[Markup]:
    inside = [(offset, ms) for offset, ms in times if scale.low < offset <= scale.high]
    if not inside:
        return
    is_short = inside[-1][1] - inside[0][1] < 3 * 86_400_000
    reached, before = 0.0, ""
    for offset, ms in inside:
        text = f"{day(ms)} {clock(ms)}" if is_short else day(ms)
        size = len(text) * CHARACTER
        left = scale.x(offset) - size / 2
        if text == before or left < max(reached + 16, scale.left) or left + size > width - 2:
            continue
        reached, before = left + size, text
        yield _text(left, bottom + 2 * ROW, text, "date")


def ticks_between(low: int, high: int, most: int) -> list[int]:
    """Round numbers, at most `most` steps apart evenly."""
    step = 1
    for step in (size * 10**power for power in range(19) for size in (1, 2, 5)):
        if (high - low) / step <= most:
            break
    first = -(-low // step) * step
    return list(range(first, high + 1, step))


def _extent(scale: Scale, start: int, end: int, least: float) -> tuple[float, float]:
    """Left edge and width, no narrower than can be seen, and inside the lane."""
    left, right = scale.x(start), scale.x(end)
    width = max(right - left, least)
    return min(left, scale.right - width), width


def _text(x: float, y: float, text: str, class_: str) -> Markup:
    return tag("text", text, x=_n(x), y=_n(y), class_=class_)


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def legend(log: LogMap) -> Markup:
    """What the colours of this picture are, of those that it has."""
    sorts = {piece.sort for lane in log.lanes for piece in lane.pieces}
    words = {
        "held": "held",
        "copying": "copy not finished",
        "deleting": "being deleted",
        "version": "deleted, a version is kept",
        "hole": "missing or damaged",
    }
    items = [(sort, word) for sort, word in words.items() if sort in sorts]
    if any(lane.is_dark for lane in log.lanes):
        items.append(("dark", "nobody looked"))
    if log.went:
        items.append(("lost" if log.lost else "went", "affected"))
    return tag(
        "ul",
        *(tag("li", tag("span", class_=f"swatch {sort}", aria_hidden="true"), word) for sort, word in items),
        class_="legend",
    )


def is_small(spans: Spans, log: LogMap) -> bool:
    """Whether the picture shows only a part of the log."""
    return bool(spans) and window(log) != (log.low, log.low + max(log.high - log.low, 1))
