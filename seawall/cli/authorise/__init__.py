"""`seawall authorise`: a deletion that somebody allows, so that the audit knows of it."""

from __future__ import annotations

from seawall.cli.lazy import verb_group

authorise = verb_group(
    {
        "records": "seawall.cli.authorise.records",
        "topic": "seawall.cli.authorise.topic",
    },
    help="Allow a deletion, of records or of a topic, for a while: docs/POLICY.md. Deletes nothing.",
    short_help="Allow a deletion of records or of a topic.",
)
