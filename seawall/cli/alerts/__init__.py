"""`seawall alerts`: what people are told, whether it arrived, and to tell it again."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

alerts = verb_group(
    {
        "deliver": "seawall.cli.alerts.deliver",
        "list": "seawall.cli.alerts.list",
        "replay": "seawall.cli.alerts.replay",
        "test": "seawall.cli.alerts.test",
    },
    help="Tell people what runs found, and see whether it arrived: docs/ALERTS.md.",
    short_help="Tell people what runs found, and see whether it arrived.",
)
