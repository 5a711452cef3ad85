"""A read-only endpoint that speaks Kafka's protocol: tiered offsets from the store, all others by a broker.

    protocol/    the layouts as tables, one interpreter for them, and which requests there are
    upstream     connections of ours to real brokers; `cluster` knows which broker leads what
    tier, reads  which offsets are in the store, and their batches
    fetch, offsets, topics, groups, writes    what each request is answered
    connection, server                        one client; all of them, and the limits

Owns the seam: of each partition, offsets below the frontier are answered from the store and all others by the
partition's leader, and every answer says the same of where the log begins and ends.

Refuses to write, and to name a real broker in any answer: a client that knows one leaves for good
(KAFKA_FACTS 6, 22).

Invariant: what is served at an offset is byte for byte the batch that the log has there, or an error that the
client tries again; never OFFSET_OUT_OF_RANGE inside of `[log start, log end)`.
"""
