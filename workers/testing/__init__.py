"""The test kit that comes with the consumer: for handlers and settings of yours as for the machinery itself.

`broker` is a cluster in memory with groups, rebalances, compaction, transaction markers and unclean
elections; `world` runs consumers on it, one thread, a clock that only it moves, handlers that end when they
are told; `faults` plans what goes wrong, from a seed; `checks` says afterwards whether anything was lost or
overtaken.
"""
