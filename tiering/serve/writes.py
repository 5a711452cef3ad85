"""Answers to writers: no, in words.

Produce is listed, as librdkafka would not fetch otherwise (KAFKA_FACTS 6), and refused by an error that no
client tries again. Whoever writes transactions or with idempotence is refused at its first step.
"""

from __future__ import annotations

from tiering.serve.groups import READ_ONLY
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.fetching import (
    PartitionProduced,
    ProduceRequest,
    ProduceResponse,
    TopicProduced,
)
from tiering.serve.protocol.session import InitProducerIdRequest, InitProducerIdResponse
from tiering.serve.service import Service

NO_ACKS = 0


def produce(service: Service, request: ProduceRequest) -> ProduceResponse | None:
    """Every partition refused; nothing at all where the client wants no answer: it is hung up on."""
    service.counters.count("writes_refused")
    if request.acks == NO_ACKS:
        return None
    return ProduceResponse(
        responses=tuple(
            TopicProduced(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    PartitionProduced(
                        index=each.index, error_code=Code.POLICY_VIOLATION, error_message=READ_ONLY
                    )
                    for each in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


def init_producer_id(service: Service, request: InitProducerIdRequest) -> InitProducerIdResponse:
    service.counters.count("writes_refused")
    return InitProducerIdResponse(error_code=Code.CLUSTER_AUTHORIZATION_FAILED)
