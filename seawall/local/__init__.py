"""Real servers on this machine, for `seawall demo` and for the tests: Kafka brokers and an S3 bucket.

Owns processes and folders that its callers hand to it. It holds no domain logic, is no way to run anything
in production, listens on 127.0.0.1 only, and leaves no process behind.
"""
