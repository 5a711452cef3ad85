"""`seawall policy`: what was declared for which topics, beside what brokers do."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

policy = verb_group(
    {
        "check": "seawall.cli.policy.check",
        "show": "seawall.cli.policy.show",
        "apply": "seawall.cli.policy.apply",
    },
    help="Declare how long data is kept, and what may destroy it: docs/POLICY.md.",
    short_help="Declare how long data is kept, and what may destroy it.",
)
