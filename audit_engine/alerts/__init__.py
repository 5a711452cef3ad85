"""Telling people: what a run found to be news, to whoever is to hear of it, until they have it.

    news        what finished runs left in the outbox, as values; the port that reads it (`outbox/spark.py`)
    threads     news folded into threads: what is told together, stays together, and ends once
    message     one thing to tell of a thread, with all that stands in it; the same id for ever
    formats     a message as its receiver wants it: native JSON, Alertmanager, PagerDuty, Slack
    signing     Standard Webhooks
    schedule    what an answer means, and when to try again
    record      what was taken in, what is to be told to whom, and each attempt: one SQLite file
    deliverer   the order of it all
    transport   the port to the network (`http.py`, which connects to the address that was checked)

Nothing here judges: a thread ends when the run says that its findings did (RULES.md, "Closing").

Invariant: each message reaches each endpoint at least once or is on record as given up, a thread's in order,
each with one id whatever is repeated.
"""
