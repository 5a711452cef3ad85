"""`seawall tier`: what is in the tier, what lies about in it, and whether the bucket alone tells the same."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

tier = verb_group(
    {
        "status": "seawall.cli.tier.status",
        "plan-removals": "seawall.cli.tier.plan_removals",
        "orphans": "seawall.cli.tier.orphans",
        "rebuild": "seawall.cli.tier.rebuild",
        "scrub": "seawall.cli.tier.scrub",
        "scrub-worker": "seawall.cli.tier.scrub_worker",
    },
    help="Look at what is tiered, and clean up what uploads left behind: docs/TIERING.md.",
    short_help="Look at what is tiered, and clean up what uploads left behind.",
)
