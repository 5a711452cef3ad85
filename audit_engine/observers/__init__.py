"""What watches a broker without touching it, and says what it saw as events.

    disk     the log dirs of this host: segments, starts, watermarks, epochs, lives of replicas
    kraft    the cluster's metadata log, or the admin API: topics, leaders, replicas, dynamic settings
    configs  what each broker goes by, static settings and defaults included
    kip405   what Kafka's own tiered storage writes of its segments

    kept     what an observer remembers, on disk; telling: how what it kept gets out
    sinks    where that goes; errors: what keeps an observer from looking

Owns no verdict: an observer says what was so at one look and no longer at the next, and between which times.
Refuses to write anywhere but into its own folder.
"""
