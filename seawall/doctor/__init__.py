"""Is everything that Seawall stands on in order? Looks, never changes; one finding a line, with its remedy.

`machine` looks at Python, Java, jars and disk, `kafka` at the brokers, `s3` at the bucket. Each finding is a
value; what could not be looked at is UNKNOWN or SKIPPED with the reason, never OK. Every look has a deadline.
"""
