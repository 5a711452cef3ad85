"""Effective configuration, polled by DescribeConfigs: what each broker goes by, static defaults included.

    keys        which settings are told, and which of a broker's stand behind a topic's
    effective   the answers of a cluster to what one broker goes by; pure
    memory      what was told, on disk, with the events that are not out yet
    observer    Observer: ask, compare, keep, emit

What is set dynamically is in the metadata log too, dated and change by change (`observers.kraft`). What
stands in a server.properties, and Kafka's own defaults, are in no log, may differ from broker to broker, and
each broker deletes by its own (KAFKA_FACTS 3, 17). So a topic is told once for each broker that holds it.

Owns what the cluster answers. Refuses to tell a setting that is not in `keys`: no secret is among those.
"""
