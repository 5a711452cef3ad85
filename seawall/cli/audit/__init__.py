"""`seawall audit`: one module a verb. Evidence into its tables; nothing here judges it."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

audit = verb_group(
    {
        "ingest": "seawall.cli.audit.ingest",
        "quarantine": "seawall.cli.audit.quarantine",
    },
    help="Keep the evidence of what happened to each log, in Delta tables: docs/INGEST.md.",
    short_help="Keep the evidence of what happened to each log.",
)
