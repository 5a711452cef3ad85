"""Who needs which rights, in Kafka and in S3, and no more.

    roles   the roles, and what each may do: one table for Kafka, one for S3
    acls    as commands for Kafka's own kafka-acls
    iam     as IAM policies
    page    as a page for people

Owns the least that each role works with. Refuses to hand out what deletes a version, changes a bucket, or
changes a topic's settings: no role has it, and the IAM policies deny it.

Invariant: the S3 rights of a role are those of the calls that it makes, and no others; a test reads
tiering/store/s3.py for them.
"""
