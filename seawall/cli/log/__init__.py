"""`seawall log`: look at the files that a broker keeps, without a broker."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

log = verb_group(
    {
        "verify": "seawall.cli.log.verify",
        "dump": "seawall.cli.log.dump",
    },
    help="Print or verify Kafka's files on disk: segments, indexes, snapshots, checkpoints. Read-only.",
    short_help="Print or verify Kafka's files on disk.",
)
