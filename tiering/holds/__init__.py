"""Holds: what of a log nothing of ours may trim or delete until somebody releases it.

    placing    a hold as part of the log's own record: placed, released, noted what came of it
    versions   the legal hold on the object versions that the metadata names

Owns the two ways in which a hold binds what is ours. What binds Kafka is the shell's, as only a declared
policy allows it (docs/HOLDS.md).
"""
