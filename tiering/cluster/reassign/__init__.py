"""The order of a partition's replicas, changed: the first of them is whom a preferred election makes leader.

    messages   AlterPartitionReassignments (KIP-455) as tables and bytes
    client     ReplicaOrder: the request, put to any broker, which passes it on to the controller

librdkafka has no such call; the connection and its security are those of `tiering.cluster.quorum`.

Owns the request. Refuses another set of replicas than the partition has: nothing is copied or removed by it.
"""
