"""One scrub by many processes: what is due is dealt out as tasks over a topic, and answers come back.

    coordinator (`seawall tier scrub --workers kafka`)      worker (`seawall tier scrub-worker`), any number
    what is due, budget, listing                            HAIL: I am here, with so many threads
    TASK: look at this segment, by then, at this pace  ──►  the very look of `tiering.scrub.look`
    judged on newer metadata, said, noted              ◄──  ANSWER: what each object came to

    words      the three of them as values, and as bytes
    board      the coordinator's: who is there, what is out, whose answer counts
    looks      the coordinator as `tiering.scrub.looks` asks for it
    handler    the worker's: a task in, an answer out
    topics     what the topics must be like
    kafka      all of it over Kafka; the worker's side by `workers.consumer`

Owns the dealing out. Refuses to judge: an answer is what somebody saw, and the run holds it against newer
metadata as it does its own looks. What a worker finds wrong this process looks at itself before it is said.

Invariant: a segment that was sent out ends once in the run: by an answer to this very task, or unclear.
"""
