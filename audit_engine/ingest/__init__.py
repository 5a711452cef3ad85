"""From the topic of events into the tables of evidence: append, exactly once by position.

    position    where to go on, and what retention took meanwhile; no Spark, no Kafka
    client      librdkafka's properties as Kafka's Java client takes them, for Spark
    kafka       how far the topic goes, by the admin API
    rows        records as rows
    spark       the streaming query and its commits

Owns the way of a record. Refuses to judge, to remove repetitions, and to trust a checkpoint.

Invariant: each record that the topic held is a row of audit_events or of audit_quarantine, once by its
position, or lies in a stretch that audit_quarantine names as lost.
"""
