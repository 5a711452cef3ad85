"""A soak to be looked at: a line while it goes on, and a table when it has ended.

Owns the drawing: values in, text out.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tests.soak.bounds import Wanted
from tests.soak.measured import MIB, At
from tests.soak.seen import PARTS, Soaked, summed

BAR = 24
LEVELS = "▁▂▃▄▅▆▇█"
SPARKS = 24


def status(found: Soaked, wanted: Wanted, at_s: float) -> str:
    """One line: how far it is, and how it stands."""
    done = round(min(1.0, at_s / wanted.seconds) * BAR)
    memory = " ".join(
        f"{name} {each[-1][1].memory_bytes / MIB:.0f}" for name, each in sorted(found.held.items()) if each
    )
    lags = " ".join(
        f"{name.partition(',')[0]} {each[-1].value:.0f}"
        for name, each in sorted(found.lags.items())
        if each and name.endswith(", s")
    )
    audit = f", last: {found.audits[-1].verdicts}" if found.audits else ""
    return (
        f"[{'█' * done}{'·' * (BAR - done)}] {_clock(at_s)} of {_clock(wanted.seconds)}"
        f" │ MiB: {memory} │ behind, s: {lags} │ {len(found.scrubs)} scrubs,"
        f" {len(found.audits)} audits{audit} │ {len(found.wrong)} wrong"
    )


def table(found: Soaked) -> str:
    """All that was measured."""
    lines = [
        f"{found.records:,} records, {len(found.scrubs)} scrubs, {found.cold_reads} cold reads,"
        f" {len(found.audits)} audits",
        "",
        f"{'':20} {'early':>9} {'end':>9} {'most':>9} {'rise':>9}  from 0 up, over time",
    ]
    for name in sorted(found.held):
        for part in PARTS:
            unit, shown = (MIB, "MiB") if part == "memory" else (1, part)
            lines.append(_row(f"{name}, {shown}", found.of(name, part), unit))
    lines.append("")
    lines += [_row(f"{name}, MiB", samples, MIB) for name, samples in sorted(found.disks.items())]
    if found.heap:
        lines.append(
            f"ingest, live objects, MiB: {' '.join(f'{each.value / MIB:.0f}' for each in found.heap)}"
        )
    lines.append("")
    lines += [
        f"{name:22} at most {max(each.value for each in samples):10,.1f}  {sparks(samples)}"
        for name, samples in sorted(found.lags.items())
        if samples
    ]
    lines.append("")
    lines += [
        f"audit {each.summary['run']:2} at {_clock(each.at_s)}, {each.took_s:4.0f} s:"
        f" {each.summary['events']:6} events, {each.summary['logs']} logs,"
        f" {each.summary['excused']} excused; {each.verdicts}; {each.summary['open_findings']} findings"
        for each in found.audits
    ]
    lines += [f"WRONG {each}" for each in found.wrong] or ["nothing is wrong"]
    return "\n".join(lines)


def sparks(samples: Sequence[At], width: int = SPARKS) -> str:
    """From 0 up to the greatest, so that what is level looks level."""
    most = max((each.value for each in samples), default=0.0)
    if most <= 0:
        return LEVELS[0] * min(width, len(samples))
    size = max(1.0, len(samples) / width)
    stretches = [
        samples[round(place * size) : round((place + 1) * size)] for place in range(min(width, len(samples)))
    ]
    return "".join(
        LEVELS[min(len(LEVELS) - 1, int(fmean(each.value for each in one) / most * len(LEVELS)))]
        for one in stretches
        if one
    )


def _row(name: str, samples: Sequence[At], unit: float) -> str:
    found = summed(samples, unit)
    cells = " ".join(f"{found.get(each, float('nan')):9,.1f}" for each in ("early", "end", "most", "rise"))
    return f"{name:20} {cells}  {sparks(samples)}"


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:02}:{int(seconds) % 60:02}"
