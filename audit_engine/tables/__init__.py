"""The Delta tables of evidence: their columns, how they are made, and how they are added to.

    columns     audit_events' and audit_quarantine's columns, derived from the wire form; no Spark
    marks       what each commit says of itself: its token, and which Kafka offsets it holds
    spark       makes and checks the tables; appends, and reads back whether it did

Owns the tables' schema and their commits. Refuses to change or remove a row: they are appendOnly.

Invariant: every commit of ours names whole half-open ranges of Kafka offsets, each beginning where the last
one of its partition ended, or where a row of the quarantine says that a stretch was lost.
"""
