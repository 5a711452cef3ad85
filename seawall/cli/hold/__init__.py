"""`seawall hold`: what of a log nothing of ours may trim or delete, and what else is kept from it."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

hold = verb_group(
    {
        "list": "seawall.cli.hold.list",
        "place": "seawall.cli.hold.place",
        "findings": "seawall.cli.hold.findings",
        "release": "seawall.cli.hold.release",
    },
    help="Keep a log from being trimmed or deleted, until somebody releases it: docs/HOLDS.md.",
    short_help="Keep a log from being trimmed or deleted.",
)
