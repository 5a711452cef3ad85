"""How many consumers a group should have: a KEDA external scaler that ignores blips.

`values` is what is seen of a group and what is said of it, `options` what a ScaledObject may ask for,
`window` the samples behind a word, `triage` judges one partition, `evaluate` the group, `replicas` rounds a
number of replicas to a balanced one. All of these are pure, with the time as an argument. `chain` makes one
history of what several replicas of the scaler see; `sampler` and `desk` hold the running ones; `kafka` and
`serving` are the edges.

Invariant: what is not known is never said to be zero.
"""
