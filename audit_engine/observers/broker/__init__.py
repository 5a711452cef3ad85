"""Whether the broker of this host runs, look by look: that it started again, and whether it ended in order.

    holder      who holds the lock of the log dirs, and whether they have the mark of a clean stop
    observer    Observer: look, compare, keep, emit

A broker holds a lock on `.lock` in each log dir for as long as it lives, and leaves `.kafka_cleanshutdown`
there when it ends in order, to take it away at its next start. Both are only asked for, never taken.

Owns what these files tell. Refuses to tell why a broker ended.
"""
