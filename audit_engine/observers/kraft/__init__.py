"""The cluster's metadata as events: topics, leaders, in-sync replicas, assignments, dynamic configuration.

    sight        what the events of one moment have in common, and which partitions they are about
    subjects     one topic, partition, setting or broker, before and after: what is to be said of it
    dated        the metadata log record by record: each change at its offset
    difference   two images of the cluster: what lies between them, coalesced
    secrets      which values are told
    memory       what was told, on disk
    observer     KraftObserver: follow the log, wait for the quorum's word, keep, emit
    polled       PolledObserver: the same kinds from the admin API, where a host has no metadata log

Every host of a cluster holds the same log, so every observer of it says the same events. Their ids are made
of the cluster, the record's epoch and offset, the kind and the subject, and all they say comes from the log:
the events of two observers are equal, and one id is one event (docs/EVIDENCE.md).

Owns what the metadata says. Refuses to say what is not committed (KAFKA_FACTS 16).
"""
