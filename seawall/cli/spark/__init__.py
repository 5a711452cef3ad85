"""`seawall spark`: what a Spark cluster is given to run Seawall."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

spark = verb_group(
    {"package": "seawall.cli.spark.package"},
    help="Take the audit to a Spark cluster: docs/SCHEDULES.md.",
    short_help="Take the audit to a Spark cluster.",
)
