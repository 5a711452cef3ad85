"""Proof by replay: each executor of a log of ours, run again over its log and held against what lives by it.

    segments    the reference table, over the topic of metadata
    ingest      the rows of evidence, over the topic of events
    audit       the judge, over the tables of evidence
    outbox      what people are told, over the runs' news

Each comes to steps, one behind each event of its log (`workers.proof`). Owns the wiring; what is compared is
each package's own.
"""
