"""Day one on an existing cluster (DESIGN §11): look, say what is there, and write the files to begin with.

    seen          what was seen, as values; `look` gathers them, `kafka` asks
    versions      which Kafka that is
    rates         how much comes in a day, from ages and from two looks
    findings      what is a danger to data already
    assumed       what an estimate rests on: prices, and what Seawall does in a day
    estimate      what S3 and Spark would cost
    policy_text, settings_text, permissions/   the files; `files` writes them

Owns the order of all this (`report`). Refuses to change anything in the cluster or the bucket: no port here
has a call that could. What could not be learnt is said, and never filled in.

Invariant: the policy that is written declares what brokers do already, and opts nothing in.
"""
