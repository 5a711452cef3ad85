"""The page's words: numbers and times as people read them, a short name for each rule, a verdict's sentence.

Owns the wording. Invariant: nothing that was not looked at is described as if it were well.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone

from audit_engine.report.markup import Markup, tag

TITLES: Mapping[str, str] = {
    "START-01": "A log start went back",
    "START-02": "A log's start rose without a cause",
    "START-03": "A log start above all that was committed",
    "START-04": "A replica starts elsewhere than its leader",
    "START-05": "A log start inside a segment",
    "START-06": "The head of the log cannot be read",
    "RET-01": "Deleted before its time",
    "RET-02": "Deleted while within its size",
    "RET-03": "Retention is not what was declared",
    "RET-04": "A declared change lets data go",
    "RET-05": "Expired data is still there",
    "RET-06": "A timestamp lies too far ahead",
    "SEG-01": "A copy's states do not follow each other",
    "SEG-02": "A hole inside the log",
    "SEG-03": "Two segments claim the same offsets",
    "SEG-04": "A segment's record cannot be true",
    "SEG-05": "A delete of an unknown segment",
    "SEG-06": "A tiered object is missing",
    "SEG-07": "An object that nobody knows",
    "SEG-08": "A tiered object is damaged",
    "SEG-09": "Dropped from disk before it was copied",
    "SEG-10": "Copied above the high watermark",
    "SEG-11": "A copy does not finish",
    "DEL-01": "Deleted from the tier without a cause",
    "META-01": "Brokers' tables of the tier disagree",
    "META-02": "One segment with two contents",
    "HWM-01": "The high watermark went back",
    "HWM-02": "Committed records were truncated",
    "HWM-03": "The watermark rose over nothing",
    "EPO-01": "Two leaders, or an epoch that fell",
    "OPS-01": "Deleted, and nobody allowed it",
    "OPS-02": "Too much deleted within an hour",
    "OPS-03": "An object was deleted by hand",
    "HLD-01": "Deleted under a hold",
    "RST-01": "A restore that is not as planned",
    "AUD-01": "Evidence never came",
    "AUD-02": "One event with two contents",
    "AUD-03": "An emitter fell silent",
    "AUD-04": "The audit's own table was changed",
    "AUD-05": "A log was not judged in time",
    "AUD-06": "Evidence came too late",
    "AUD-07": "The canary's fault was not found",
}
VERDICT_WORDS = {
    "VIOLATION": "in violation",
    "INDETERMINATE": "cannot be told",
    "SUSPECT": "inside a grace",
    "PASS": "passing",
}
DEPLOYMENT_WORDS = {"none": "not tiered", "ours": "tiered by Seawall", "kip405": "tiered by the broker"}
_UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))
_EXACT_BELOW = 10**11


def number(value: int) -> str:
    """10500 as 10,500."""
    return f"{value:,}"


def short(value: int) -> str:
    """As many digits as fit under a picture."""
    if abs(value) < _EXACT_BELOW:
        return number(value)
    unit, size = ("T", 10**12) if abs(value) >= 10**12 else ("G", 10**9)
    return f"{value / size:,.3f}".rstrip("0").rstrip(".") + unit


def things(count: int, one: str, many: str | None = None) -> str:
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


def offsets(start: int, end: int) -> str:
    return f"[{number(start)}, {number(end)})"


def span_of(ms: int) -> str:
    """The largest unit that says it exactly: 604800000 is 7 d."""
    for unit, size in _UNITS:
        if ms >= size and ms % size == 0:
            return f"{number(ms // size)} {unit}"
    return f"{number(ms)} ms"


def about(ms: int) -> str:
    """How long, roughly."""
    for unit, size in _UNITS:
        if ms >= size:
            return f"{ms / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{number(max(ms, 0))} ms"


def moment(ms: int) -> str:
    at = _utc(ms)
    return f"{at:%Y-%m-%d %H:%M}"


def day(ms: int) -> str:
    at = _utc(ms)
    return f"{at.day} {at:%b}"


def clock(ms: int) -> str:
    return f"{_utc(ms):%H:%M}"


def time(ms: int) -> Markup:
    return tag("time", f"{moment(ms)} UTC", datetime=_utc(ms).isoformat(timespec="seconds"))


def title(rule_id: str) -> str:
    return TITLES.get(rule_id, rule_id)


def lowered(text: str) -> str:
    """As it stands inside a sentence."""
    return text[:1].lower() + text[1:]


def headline(verdict: str, counts: Mapping[str, int]) -> str:
    """One sentence under the verdict."""
    logs = sum(counts.values())
    bad, dark, waiting = (counts.get(each, 0) for each in ("VIOLATION", "INDETERMINATE", "SUSPECT"))
    if not logs:
        return "Nothing was judged. No log was heard of, and that is no pass."
    if verdict == "VIOLATION":
        also = f" Of {number(dark)} more nothing can be told." if dark else ""
        verb = "violates" if bad == 1 else "violate"
        return f"{number(bad)} of {things(logs, 'log')} {verb} a rule, and nothing has made up for it.{also}"
    if verdict == "INDETERMINATE" and dark:
        return f"Of {number(dark)} of {things(logs, 'log')} nothing can be told: evidence is missing."
    if verdict == "INDETERMINATE":
        return "Every log was judged, but the evidence itself is in doubt."
    if verdict == "SUSPECT":
        shown = f"Of {things(logs, 'log')} {number(waiting)} show what is inside its grace"
        return f"{shown}; the next run judges it."
    every = "The only log was" if logs == 1 else f"All {number(logs)} logs were"
    return f"{every} judged on complete evidence, and nothing that went lacks a cause."


def _utc(ms: int) -> datetime:
    """Of a time that no calendar has, the nearest that one has: it is evidence, and may be anything."""
    try:
        return datetime.fromtimestamp(ms / 1000, tz=timezone.utc)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0 if ms < 0 else 253_402_300_799, tz=timezone.utc)
