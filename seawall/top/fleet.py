"""What several looks come to: who answers, which logs are worst off, what the audit said last.

Values only. Invariant: what nobody told is None and is shown as a dash, never as zero; a place that does not
answer is listed first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seawall.top.scrape import Labels, Look

WORST_STATES = ("failed", "stalled", "unknown", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One agent, scaler or file. `doubts`: what keeps it from ready."""

    name: str
    trouble: str
    logs: int = 0
    waiting_bytes: float | None = None
    copied_per_s: float | None = None
    events_pending: float | None = None
    events_lost: float | None = None
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """One log as the agent sees it that copies it."""

    place: str
    name: str
    state: str
    frontier: float | None
    lag_offsets: float | None
    lag_s: float | None
    stands_s: float | None
    retention_in_s: float | None
    is_overtaken: bool

    @property
    def is_bad(self) -> bool:
        return self.is_overtaken or self.state in WORST_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """By the newest file that says how the audit stands."""

    verdicts: Mapping[str, int]
    findings: Mapping[tuple[str, str, str], int]  # rule, severity, open or suppressed
    worries: int
    as_of_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    places: tuple[Place, ...]
    logs: tuple[LogRow, ...]  # the worst first
    audit: Audit | None
    scaled: tuple[tuple[str, str, float | None, float | None], ...]  # object, verdict, lag, replicas


def fleet(looks: Sequence[Look], before: Sequence[Look] = ()) -> Fleet:
    """`before`: the looks before these, for what is told by second."""
    earlier = {each.place: each for each in before}
    places = sorted(
        (_place(each, earlier.get(each.place)) for each in looks),
        key=lambda each: (not each.trouble, not each.doubts),
    )
    logs = [row for each in looks for row in _logs(each)]
    return Fleet(
        places=tuple(places),
        logs=tuple(sorted(logs, key=_worst_first)),
        audit=_audit(looks),
        scaled=tuple(row for each in looks for row in _scaled(each)),
    )


def _place(look: Look, before: Look | None) -> Place:
    if look.trouble:
        return Place(name=look.place, trouble=look.trouble)
    logs = len(_logs(look))
    return Place(
        name=look.place,
        trouble="",
        logs=logs,
        waiting_bytes=look.total("seawall_log_waiting_bytes") if logs else None,
        copied_per_s=_per_s("seawall_log_copied_bytes_total", look, before) if logs else None,
        events_pending=look.one("seawall_events_pending"),
        events_lost=look.one("seawall_events_lost_total"),
        doubts=tuple(sorted(labels["doubt"] for labels, value in look.of("seawall_doubt") if value)),
    )


def _per_s(name: str, look: Look, before: Look | None) -> float | None:
    if before is None or before.trouble or look.at_s <= before.at_s:
        return None
    grown = look.total(name) - before.total(name)
    return grown / (look.at_s - before.at_s) if grown >= 0 else None  # it was started anew


def _key(labels: Labels) -> tuple[str, str, str]:
    return labels["topic"], labels["partition"], labels["topic_id"]


def _logs(look: Look) -> list[LogRow]:
    def by_log(name: str) -> dict[tuple[str, str, str], float]:
        return {_key(labels): value for labels, value in look.of(f"seawall_log_{name}")}

    frontier, lag, lag_s = by_log("frontier_offset"), by_log("lag_offsets"), by_log("lag_seconds")
    stands, retention = by_log("frontier_standing_seconds"), by_log("retention_reaches_frontier_seconds")
    overtaken = by_log("retention_overtaking")
    return [
        LogRow(
            place=look.place,
            name=f"{labels['topic']}-{labels['partition']}",
            state=labels["state"],
            frontier=frontier.get(key),
            lag_offsets=lag.get(key),
            lag_s=lag_s.get(key),
            stands_s=stands.get(key),
            retention_in_s=retention.get(key),
            is_overtaken=bool(overtaken.get(key)),
        )
        for labels, value in look.of("seawall_log_state")
        for key in [_key(labels)]
        if value and labels["state"] != "not_led"
    ]


def _worst_first(row: LogRow) -> tuple[object, ...]:
    rank = WORST_STATES.index(row.state) if row.state in WORST_STATES else len(WORST_STATES)
    return (not row.is_overtaken, rank, -(row.lag_s or 0), -(row.lag_offsets or 0), row.name, row.place)


def _audit(looks: Sequence[Look]) -> Audit | None:
    told = [each for each in looks if each.of("seawall_audit_metrics_timestamp_seconds")]
    if not told:
        return None
    newest = max(told, key=lambda each: each.one("seawall_audit_metrics_timestamp_seconds") or 0)
    findings = newest.of("seawall_audit_open_findings")
    return Audit(
        verdicts={labels["verdict"]: int(value) for labels, value in newest.of("seawall_audit_logs")},
        findings={(at["rule"], at["severity"], at["is"]): int(value) for at, value in findings},
        worries=int(newest.one("seawall_audit_worries") or 0),
        as_of_s=newest.one("seawall_audit_last_run_as_of_timestamp_seconds"),
    )


def _scaled(look: Look) -> list[tuple[str, str, float | None, float | None]]:
    lag = {labels["object"]: value for labels, value in look.of("seawall_scaler_lag_records")}
    replicas = {labels["object"]: value for labels, value in look.of("seawall_scaler_replicas")}
    return [
        (labels["object"], labels["verdict"], lag.get(labels["object"]), replicas.get(labels["object"]))
        for labels, value in look.of("seawall_scaler_verdict")
        if value
    ]
