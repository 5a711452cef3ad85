"""A window drawn: the lag and its two thresholds, the verdict of each moment, and the replicas. Pure text
out.

For a terminal it is columns of blocks, and for a page an SVG without scripts, fonts or anything from
elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from math import ceil

from workers.scaler.options import Options
from workers.scaler.replay import Judged
from workers.scaler.values import Evaluation, Move, Verdict

WIDTH = 72  # columns
ROWS = 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"
LETTERS = {
    Verdict.UNKNOWN: "?",
    Verdict.IDLE: "z",
    Verdict.LOW: ".",
    Verdict.BETWEEN: "-",
    Verdict.TRANSIENT: "t",
    Verdict.RECOVERING: "r",
    Verdict.PERSISTENT: "P",
}
_COLOURS = {
    Verdict.UNKNOWN: "#d0d0d0",
    Verdict.IDLE: "#eef2f6",
    Verdict.LOW: "#ffffff",
    Verdict.BETWEEN: "#f4f4e8",
    Verdict.TRANSIENT: "#fdebc8",
    Verdict.RECOVERING: "#d9efdc",
    Verdict.PERSISTENT: "#f6c9c4",
}
_MOVES = {Move.OUT: "+", Move.IN: "-", Move.HOLD: " "}


def in_columns(judged: Sequence[Judged], options: Options) -> list[str]:
    """Lines for a terminal. Of several samples in a column the highest lag and the last word are shown."""
    if not judged:
        return ["no samples"]
    columns = _columned(judged)
    lags = [max(each.word.lag_records for each in column) for column in columns]
    top = max(*lags, options.lag_threshold)
    scale = len(str(top))
    lines = []
    for row in range(ROWS, 0, -1):
        bars = "".join(_EIGHTHS[min(8, max(0, round((lag / top * ROWS - row + 1) * 8)))] for lag in lags)
        marks = [
            name
            for name, threshold in (
                ("lagThreshold", options.lag_threshold),
                ("lagThresholdExit", options.lag_threshold_exit),
            )
            if row - 1 < threshold / top * ROWS <= row
        ]
        side = str(round(top * row / ROWS)).rjust(scale)
        lines.append(f"{side} |{bars}| {' '.join(marks)}".rstrip())
    blank = " " * scale
    lines.append(f"{blank}  {''.join(LETTERS[column[-1].word.verdict] for column in columns)}  verdict")
    moved = "".join(
        next((_MOVES[each.word.move] for each in column if each.word.move is not Move.HOLD), " ")
        for column in columns
    )
    replicas = "".join(_digit(column[-1].word) for column in columns)
    lines.append(f"{blank}  {replicas}  replicas")
    lines.append(f"{blank}  {moved}  moves")
    span_s = judged[-1].sample.at_s - judged[0].sample.at_s
    legend = "  ".join(f"{letter} {verdict.value}" for verdict, letter in LETTERS.items())
    return [*lines, f"{span_s:.0f} s, {len(judged)} samples", legend]


def _columned(judged: Sequence[Judged]) -> list[Sequence[Judged]]:
    count = min(WIDTH, len(judged))
    edges = [round(n * len(judged) / count) for n in range(count + 1)]
    return [judged[begin:end] for begin, end in pairwise(edges)]


def _digit(word: Evaluation) -> str:
    if not word.is_known:
        return "?"
    whole = ceil(word.replicas)
    return str(whole) if whole < 10 else "*"


_WIDE, _HIGH, _LOW = 960, 240, 80  # of the lag's part, and of the replicas' below it
_LEFT = 70
_XMLNS = "http://www.w3.org/2000/svg"


def as_svg(judged: Sequence[Judged], options: Options, *, title: str) -> str:
    """One picture, for a page or a file."""
    if not judged:
        return f'<svg xmlns="{_XMLNS}" width="200" height="30"><title>{escape(title)}</title></svg>'
    first_s, last_s = judged[0].sample.at_s, judged[-1].sample.at_s
    span_s = max(1e-9, last_s - first_s)
    top = max(*(each.word.lag_records for each in judged), options.lag_threshold) * 1.05
    most = max(1.0, *(each.word.replicas for each in judged)) * 1.1

    def across(at_s: float) -> float:
        return _LEFT + (at_s - first_s) / span_s * (_WIDE - _LEFT)

    def up(lag: float) -> float:
        return 20 + _HIGH * (1 - lag / top)

    def of_replicas(replicas: float) -> float:
        return 40 + _HIGH + _LOW * (1 - replicas / most)

    parts = []
    for n, each in enumerate(judged):
        begin = across(judged[n - 1].sample.at_s) if n else _LEFT
        at = f"{each.sample.at_s - first_s:.0f} s"
        words = "; ".join(f"{reason.rule}: {reason.text}" for reason in each.word.reasons)
        parts.append(
            f'<rect x="{begin:.1f}" y="20" width="{max(0.5, across(each.sample.at_s) - begin):.1f}" '
            f'height="{_HIGH}" fill="{_COLOURS[each.word.verdict]}"><title>'
            f"{at}: {each.word.verdict.value}. {escape(words)}</title></rect>"
        )
    for name, lag in (("enter", options.lag_threshold), ("exit", options.lag_threshold_exit)):
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDE}" y1="{up(lag):.1f}" y2="{up(lag):.1f}" stroke="#888" '
            f'stroke-dasharray="4 3"/><text x="4" y="{up(lag) + 4:.1f}">{name} {lag}</text>'
        )
    line = " ".join(f"{across(each.sample.at_s):.1f},{up(each.word.lag_records):.1f}" for each in judged)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#1f4e79" stroke-width="1.5"/>')
    steps: list[str] = []
    known = [each for each in judged if each.word.is_known]
    for n, each in enumerate(known):
        if n:
            steps.append(f"{across(each.sample.at_s):.1f},{of_replicas(known[n - 1].word.replicas):.1f}")
        steps.append(f"{across(each.sample.at_s):.1f},{of_replicas(each.word.replicas):.1f}")
    parts.append(f'<polyline points="{" ".join(steps)}" fill="none" stroke="#7a3b1f" stroke-width="1.5"/>')
    parts.append(f'<text x="4" y="{of_replicas(0):.1f}">0</text>')
    parts.append(f'<text x="4" y="{of_replicas(most / 1.1):.1f}">{most / 1.1:.1f} replicas</text>')
    body = "\n".join(parts)
    return (
        f'<svg xmlns="{_XMLNS}" viewBox="0 0 {_WIDE} {_HIGH + _LOW + 60}" '
        f'font-family="sans-serif" font-size="11"><title>{escape(title)}</title>\n'
        f'<text x="{_LEFT}" y="14">{escape(title)}: {span_s:.0f} s, {len(judged)} samples</text>\n'
        f"{body}\n</svg>\n"
    )
