"""How the fleet is written: the same words on the screen and in `--once`. A dash is what nobody told."""

from __future__ import annotations

import time

from rich.filesize import decimal
from rich.text import Text

from audit_engine.report.words import about, short
from seawall.top.fleet import Audit, Fleet, LogRow, Place

PLACES = ("place", "logs", "waiting", "copying", "events", "lost", "trouble")
LOGS = ("log", "state", "frontier", "behind", "age", "stands", "retention in", "agent")
SCALED = ("object", "verdict", "lag", "replicas")
DASH = "-"
_GOOD, _BAD, _DULL = "green", "bold red", "dim"


def place_cells(each: Place) -> tuple[Text, ...]:
    trouble = each.trouble or ", ".join(each.doubts)
    return (
        Text(each.name),
        Text(str(each.logs) if each.logs else DASH),
        Text(_size(each.waiting_bytes)),
        Text(DASH if each.copied_per_s is None else f"{_size(each.copied_per_s)}/s"),
        Text(_count(each.events_pending)),
        Text(_count(each.events_lost), style=_BAD if each.events_lost else ""),
        Text(trouble or "ready", style=_BAD if each.trouble else "yellow" if each.doubts else _GOOD),
    )


def log_cells(each: LogRow) -> tuple[Text, ...]:
    left = DASH if each.retention_in_s == float("inf") else _span(each.retention_in_s)
    return (
        Text(each.name),
        Text(each.state, style=_BAD if each.is_bad else ""),
        Text(_count(each.frontier)),
        Text(_count(each.lag_offsets)),
        Text(_span(each.lag_s)),
        Text(_span(each.stands_s), style=_DULL),
        Text(left, style=_BAD if each.is_overtaken else ""),
        Text(each.place, style=_DULL),
    )


def scaled_cells(each: tuple[str, str, float | None, float | None]) -> tuple[Text, ...]:
    name, verdict, lag, replicas = each
    return Text(name), Text(verdict), Text(_count(lag)), Text(DASH if replicas is None else f"{replicas:g}")


def headline(fleet: Fleet) -> Text:
    """The worst news first."""
    line = Text()
    line.append_text(_audit(fleet.audit))
    silent = sum(bool(each.trouble) for each in fleet.places)
    bad = sum(each.is_bad for each in fleet.logs)
    line.append("   ")
    line.append(
        f"{len(fleet.places) - silent} of {len(fleet.places)} answer", style=_BAD if silent else _GOOD
    )
    line.append("   ")
    line.append(f"{bad} of {len(fleet.logs)} logs want somebody", style=_BAD if bad else _GOOD)
    return line


def _audit(audit: Audit | None) -> Text:
    if audit is None:
        return Text("audit: nobody says", style=_DULL)
    counts = " ".join(f"{count} {verdict}" for verdict, count in sorted(audit.verdicts.items()) if count)
    critical = sum(
        n for (_, severity, state), n in audit.findings.items() if (severity, state) == ("critical", "open")
    )
    is_bad = bool(critical or audit.worries)
    age = "" if audit.as_of_s is None else f", {_span(time.time() - audit.as_of_s)} old"
    words = f"audit{age}: {counts or 'nothing judged'}"
    if critical:
        words += f", {critical} critical"
    if audit.worries:
        words += f", {audit.worries} reasons to doubt it"
    return Text(words, style=_BAD if is_bad else _GOOD)


def _count(value: float | None) -> str:
    return DASH if value is None else short(int(value))


def _size(value: float | None) -> str:
    return DASH if value is None else decimal(int(value))


def _span(seconds: float | None) -> str:
    return DASH if seconds is None else about(int(seconds * 1000))
