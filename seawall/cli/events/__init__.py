"""`seawall events`: what kinds of evidence there are, and what is said now."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

events = verb_group(
    {
        "list": "seawall.cli.events.list",
        "show": "seawall.cli.events.show",
        "tail": "seawall.cli.events.tail",
    },
    help="Look at the evidence: its kinds, and the events as they come. Read-only: docs/EVENTS.md.",
    short_help="Look at the evidence: its kinds, and the events that come.",
)
