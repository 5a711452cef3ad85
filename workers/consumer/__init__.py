"""A consumer that handles many records of a partition at once and never commits past an unfinished one.

Owns the way of a record from Kafka to its handler and of its offset back. `core` decides, as a pure machine;
`loop` carries out; `kafka` and `executors` are its hands. It refuses to say what a handler's work is worth:
a record counts as finished by the outcome that its handler returns, and by nothing else.

Invariant: a committed offset has no unfinished received record below it. After a crash anything may be
handled again, and nothing is left out.
"""
