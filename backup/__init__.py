"""What was lost, and what puts it back: the catalogue, the plan, and the targets that carry a plan out.

    catalogue   what can be had back of each log, and where from
    plan        one range of one log that is to be put back, and of what, as a file that nobody edits
    tier        puts it back into the tier; `logdir` and `topic` have the other two targets

Owns nothing that is running. Invariant: nothing of this package deletes a version of an object.
"""
