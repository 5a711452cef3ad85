"""`seawall rules`: what the audit judges by."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

rules = verb_group(
    {
        "list": "seawall.cli.rules.list",
        "show": "seawall.cli.rules.show",
        "explain": "seawall.cli.rules.explain",
    },
    help="Look at the rules that the audit judges by. Read-only: docs/rules.",
    short_help="Look at the rules that the audit judges by.",
)
