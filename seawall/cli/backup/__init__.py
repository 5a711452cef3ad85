"""`seawall backup`: what can be had back, plans, and carrying them out."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

backup = verb_group(
    {
        "list": "seawall.cli.backup.list",
        "show": "seawall.cli.backup.show",
        "verify": "seawall.cli.backup.verify",
        "check": "seawall.cli.backup.check",
        "plan": "seawall.cli.backup.plan",
        "apply": "seawall.cli.backup.apply",
        "restore-logdir": "seawall.cli.backup.restore_logdir",
        "restore-topic": "seawall.cli.backup.restore_topic",
        "offsets": "seawall.cli.backup.offsets",
        "keep": "seawall.cli.backup.keep",
        "unkeep": "seawall.cli.backup.unkeep",
        "expire": "seawall.cli.backup.expire",
        "drill": "seawall.cli.backup.drill",
        "report": "seawall.cli.backup.report",
    },
    help="What can be had back, and having it back: docs/BACKUP.md.",
    short_help="What can be had back, and having it back.",
)
