"""Events on this host's disk until Kafka has them, and a while longer.

    spool     Spool: takes events, numbers them, keeps them, hands them out in order
    file      the SQLite file: opened, checked, set aside when it is not one

Owns the numbering of an emitter's events. Refuses to know Kafka.

Invariants, each with a test that names it: what `emit` returned for is there after a kill -9. Numbers rise by
one within an incarnation; no number is given twice, whatever fails. What is not kept leaves a hole.
"""

from audit_engine.spool.file import EmitterName, SetAside
from audit_engine.spool.spool import Spool, SpoolCounters, Spooled

__all__ = ["EmitterName", "SetAside", "Spool", "SpoolCounters", "Spooled"]
