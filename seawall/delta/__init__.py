"""Commits to Delta tables on S3 of which the store takes one only: a LogStore for s3a://, and its compiling.

Delta 4.4 ships none: its own for S3 (`S3SingleDriverLogStore`) looks whether a commit's file is there and
then writes it, so that a driver that is held up between the two covers another's commit, and both were told
that theirs is in. docs/decisions/0015 has what was measured.

Owns `ConditionalLogStore.java`. It is compiled when a session starts, by the compiler that Spark itself uses
for its queries, so that no compiled code lies in the repository and no JDK is needed.
"""
