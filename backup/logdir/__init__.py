"""Puts a lost prefix back into the brokers' own log dirs, while every replica of the log is stopped.

    files       which segment files make the range, each cut so that no two overlap (pure)
    side_files  indexes of a file that was cut short; epoch histories merged (pure)
    replica     what stands in a stopped broker's log dir, and why it may not be touched
    stage       one file fetched, verified and written beside the log
    apply       the steps in one log dir, each of which may be the last; and back again
    retention   whether brokers would delete what is put back (pure)
    outage      which brokers must stop, and what goes offline with them (pure)
    prospect    what is asked of the cluster before: retention, outage; ticket keeps it
    orchestrate every replica: stopped, restored, started, looked at

Offsets are exact, since the bytes are the broker's own. On one replica alone it would be undone within a
second (KAFKA_FACTS 1): all replicas are restored before any is started, and the last leader is started first.

Invariant: until every file is verified and on the disk, nothing in the partition directory changes; from
then on each step leaves a directory that a broker can start on, and is taken again after a crash.
"""
