"""What was found before the brokers were stopped, for whoever restores then: nobody can be asked.

    <plan>.outage.json    which brokers stop, in which order; that their retention would keep the range;
                          until when that word counts

Owns the file's form. Refuses one of another plan, or one that is too old: retention may be another by now.

Invariant: a ticket is written only where nothing spoke against the restore.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from backup.logdir.errors import NotChecked
from backup.logdir.prospect import Prospect

VERSION = 1
COUNTS_FOR_MS = 4 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """`brokers` in the order in which they start."""

    plan: str
    checked_at_ms: int
    brokers: tuple[int, ...]
    offline: tuple[str, ...]
    check_interval_ms: int


def ticket_of(prospect: Prospect, plan_hash: str, now_ms: int) -> Ticket:
    outage = prospect.outage
    return Ticket(
        plan=plan_hash,
        checked_at_ms=now_ms,
        brokers=outage.brokers,
        offline=tuple(f"{topic}-{partition}" for topic, partition in outage.offline),
        check_interval_ms=prospect.check_interval_ms,
    )


def ticket_path(plan: Path) -> Path:
    return plan.with_name(f"{plan.name}.outage.json")


def write_ticket(plan: Path, ticket: Ticket) -> Path:
    path = ticket_path(plan)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps({"version": VERSION, **asdict(ticket)}, indent=1) + "\n", "utf-8")
    unfinished.replace(path)
    return path


def read_ticket(plan: Path, plan_hash: str, now_ms: int | None) -> Ticket:
    """Raises NotChecked. Without `now_ms` its age does not count: to undo, and to look afterwards."""
    path = ticket_path(plan)
    try:
        found = json.loads(path.read_bytes())
        version = found.pop("version")
        found["brokers"], found["offline"] = tuple(found["brokers"]), tuple(found["offline"])
        ticket = Ticket(**found)
    except FileNotFoundError:
        raise NotChecked(directory=path, why="it is not there") from None
    except (ValueError, KeyError, TypeError, AttributeError) as broken:
        raise NotChecked(directory=path, why=f"it is none: {broken}") from broken
    if version != VERSION or ticket.plan != plan_hash:
        raise NotChecked(directory=path, why="it is of another plan")
    if now_ms is not None and now_ms - ticket.checked_at_ms > COUNTS_FOR_MS:
        raise NotChecked(directory=path, why="it is more than four hours old")
    return ticket
