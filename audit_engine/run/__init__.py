"""The daily run: a slice of the evidence, folded over what is carried of each log, judged and committed.

cut        which events a run sees, and as of when: a rerun sees the same
told       a row of audit_events as what `rules.machine` takes
one_log    one log's events over its carried state: what the judge says of it
outcomes   findings of this run against those of the one before: what opened, changed, closed
spark      the same over all logs at once
"""
