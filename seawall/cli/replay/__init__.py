"""`seawall replay`: make again what lives by a log of ours, from that log, and compare."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

replay = verb_group(
    {
        "segments": "seawall.cli.replay.segments",
        "ingest": "seawall.cli.replay.ingest",
        "audit": "seawall.cli.replay.audit",
        "outbox": "seawall.cli.replay.outbox",
    },
    help="Rebuild what lives by one of our logs from that log, and compare: docs/REPLAY.md. Changes nothing.",
    short_help="Rebuild what lives by one of our logs from that log, and compare.",
)
