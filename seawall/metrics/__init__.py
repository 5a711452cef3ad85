"""Every metric of Seawall in one place; page, dashboard and alert rules are held against it.

    inventory   each component's collectors, asked over nothing: names, kinds, labels, words
    page        docs/METRICS.md             python -m seawall.metrics.page > docs/METRICS.md
    dashboard   deploy/grafana/seawall.json python -m seawall.metrics.dashboard > deploy/grafana/seawall.json
    audit       what the audit's tables say, for whoever scrapes a file
    collected   the way from a component's families into a registry

The naming scheme: `seawall_`, then what it is about (`log`, `observer`, `events`, `scaler`, `audit`, ...;
nothing for the agent itself), then what, then the unit where it has one (`_seconds`, `_bytes`, `_offsets`);
counts end in `_total`, moments in `_timestamp_seconds`. What is 0 or 1 is named for what 1 means. A log's
labels are topic, partition and topic_id, since a recreated topic is another log. The parallel consumer is a
library and has a prefix of its own.
"""
