"""`seawall log`: look at the files that a broker keeps, without a broker."""

from __future__ import annotations

import os

from seawall.cli.lazy import verb_group

# numpy starts a thread for products of matrices, which nothing here makes; and a scan forks beside no thread.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

log = verb_group(
    {
        "verify": "seawall.cli.log.verify",
        "dump": "seawall.cli.log.dump",
    },
    help="Print or verify Kafka's files on disk: segments, indexes, snapshots, checkpoints. Read-only.",
    short_help="Print or verify Kafka's files on disk.",
)
