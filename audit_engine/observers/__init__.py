"""What watches a broker without touching it, and says what it saw as events.

    disk     the log dirs of this host: segments, starts, watermarks, epochs, lives of replicas

Owns no verdict: an observer says what was so at one look and no longer at the next, and between which times.
Refuses to write anywhere but into its own folder.
"""
