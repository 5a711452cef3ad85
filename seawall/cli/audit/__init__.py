"""`seawall audit`: evidence into its tables, and the daily judgement on it."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

audit = verb_group(
    {
        "ingest": "seawall.cli.audit.ingest",
        "quarantine": "seawall.cli.audit.quarantine",
        "maintain": "seawall.cli.audit.maintain",
        "run": "seawall.cli.audit.run",
        "status": "seawall.cli.audit.verdicts",
        "findings": "seawall.cli.audit.verdicts",
        "statement": "seawall.cli.audit.verdicts",
        "check-statement": "seawall.cli.audit.check_statement",
        "metrics": "seawall.cli.audit.metrics",
        "report": "seawall.cli.audit.report",
        "explain": "seawall.cli.audit.explain",
        "suppress": "seawall.cli.audit.decide",
        "ack": "seawall.cli.audit.decide",
        "accept-gap": "seawall.cli.audit.decide",
        "accept-loss": "seawall.cli.audit.accept_loss",
    },
    help="Keep the evidence of what happened to each log, and judge it: docs/INGEST.md, docs/AUDIT.md.",
    short_help="Keep the evidence of each log, and judge it.",
)
