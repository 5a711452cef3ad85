"""What all formats say in the same words: times, severities, a finding in a few names, a body that fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

from audit_engine.alerts.message import Stood
from audit_engine.alerts.news import LEADER, Finding
from rules.catalogue import rule
from rules.identity import LogId
from rules.severities import SEVERITY_WORDS


def moment(timestamp_ms: int) -> str:
    """ISO 8601, in UTC."""
    at = datetime.fromtimestamp(timestamp_ms / 1000, tz=timezone.utc)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def place(finding: Finding) -> dict[str, str]:
    """What its subject names: cluster, and where it has them topic_id, partition and the rest."""
    names = ("cluster", "topic_id", "partition", "part")
    return dict(zip(names, str(finding["subject"]).split("/", maxsplit=3), strict=False))


def log_of(finding: Finding) -> LogId | None:
    """The log that it is about; None of topics, emitters and the auditor itself."""
    where = place(finding)
    if not where.get("partition", "").isdecimal():
        return None
    return LogId(where["cluster"], where["topic_id"], int(where["partition"]))


def ranges(finding: Finding) -> str:
    return " ".join(f"[{start}, {end})" for start, end in finding["ranges"])


def remedy(finding: Finding) -> str:
    """What its rule says to do; nothing of a rule that this version does not know."""
    try:
        return rule(str(finding["rule_id"])).remedy
    except KeyError:
        return ""


def not_stopped(finding: Finding) -> str:
    """Of an open critical finding: what a hold on its log cannot stop, and where to go on. A hold binds our
    agents and the object versions; brokers delete, and are elected, by themselves."""
    if finding["severity"] != "C" or finding["status"] != "open" or log_of(finding) is None:
        return ""
    word, _, broker = place(finding).get("part", "").partition(" ")
    more = f"`seawall remediate {finding['finding_id']}` says what can be done, and until when."
    if word == "replica":
        return (
            f"A hold does not keep broker {broker} from being elected, nor others from copying its start. "
            f"{more}"
        )
    led = finding.get(LEADER)  # KAFKA_FACTS 2: its start is what the others follow
    named = "" if led is None else f"Only stopping them does; broker {led} led as of this run. "
    return (
        "A hold does not stop brokers: they go on deleting below the log's start and, unless the policy says "
        f"hold_kafka, by their own retention. {named}{more}"
    )


def told(stood: Stood) -> dict[str, Any]:
    """A finding with all that is known of it."""
    severity = SEVERITY_WORDS[stood.severity]
    return {
        **stood.finding,
        "severity": severity,
        "change": stood.change,
        "is_news": stood.is_news,
        "remedy": remedy(stood.finding),
        "not_stopped_by_hold": not_stopped(stood.finding),
    }


def fitted(
    make: Callable[[Sequence[Stood]], Any], stood: Sequence[Stood], *, most: int, size_bytes_max: int
) -> bytes:
    """The body with as many findings as may be and have room, the worst."""
    shown = list(stood[:most])
    while True:
        made = json.dumps(make(shown), separators=(",", ":"), ensure_ascii=False).encode()
        if len(made) <= size_bytes_max or not shown:
            return made
        shown = shown[: len(shown) // 2]
