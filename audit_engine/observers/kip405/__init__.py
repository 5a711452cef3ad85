"""Kafka's own tiered storage (KIP-405), as its brokers wrote it down: their records, as events of a tier.

    source      the topic of records, as values and as a protocol
    segments    one copy of one segment, and what is said of it
    fold        records to copies and events; pure
    baseline    what the tier holds of each log, all in all
    memory      how far it was read and what it held then, on disk
    observer    Observer: read on, fold, emit, keep
    kafka       the topic over Kafka, and whether a broker writes one

The same kinds as of our own tier, with source `remote_log_metadata`, so that nobody takes one for the other.

Owns what `__remote_log_metadata` says. Refuses to judge the order of states, to infer why a copy went, and to
follow the plugin's own metadata.
"""
