"""DeleteRecords through librdkafka: one request to a partition's leader, and what was said to it.

    the leader did it                                      DONE
    it, or the way to it, says no                          REFUSED   (nothing was done)
    nobody answered in time, or the connection broke       TIMED_OUT (it may have been done)
    any other error                                        UNKNOWN

- A leader waits for its followers before it answers, `OPERATION_TIMEOUT_S` at most; by then it has moved its
  own start (KAFKA_FACTS 7). So REQUEST_TIMED_OUT is no failure.
- The offset -1 means "everything" to Kafka: it is never sent.

Owns this translation. Refuses to repeat a request: its caller reads back. A client is opened for each, as
requests are few, and one that has lived through an election may ask a broker that leads no more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import TimeoutError as NotInTime
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from tiering.cluster.interface import TopicPartition
from tiering.retention.local_trim import Answer, Answered

OPERATION_TIMEOUT_S = 15.0  # for the followers
REQUEST_TIMEOUT_S = 20.0
FUTURE_GRACE_S = 5.0  # on top, for a client that does not keep to its own timeout

_log = logging.getLogger(__name__)

_ANSWERS = {
    KafkaError._TIMED_OUT: Answer.TIMED_OUT,
    KafkaError._TRANSPORT: Answer.TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT: Answer.TIMED_OUT,
    KafkaError.NETWORK_EXCEPTION: Answer.TIMED_OUT,
    KafkaError.POLICY_VIOLATION: Answer.REFUSED,
    KafkaError.OFFSET_OUT_OF_RANGE: Answer.REFUSED,
    KafkaError.UNKNOWN_TOPIC_OR_PART: Answer.REFUSED,
    KafkaError._UNKNOWN_TOPIC: Answer.REFUSED,
    KafkaError._UNKNOWN_PARTITION: Answer.REFUSED,
    KafkaError.NOT_LEADER_FOR_PARTITION: Answer.REFUSED,
    KafkaError.LEADER_NOT_AVAILABLE: Answer.REFUSED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: Answer.REFUSED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: Answer.REFUSED,
    KafkaError.SASL_AUTHENTICATION_FAILED: Answer.REFUSED,
    KafkaError._AUTHENTICATION: Answer.REFUSED,
    KafkaError._SSL: Answer.REFUSED,
}


class KafkaDeleteRecords:
    """Sends the requests. For any number of threads. `open_client` is given by tests."""

    def __init__(
        self,
        librdkafka: Mapping[str, str],
        *,
        operation_timeout_s: float = OPERATION_TIMEOUT_S,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        open_client: Callable[[dict[str, Any]], AdminClient] | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {"client.id": "seawall-trim", **librdkafka}
        self._operation_timeout_s = operation_timeout_s
        self._request_timeout_s = request_timeout_s
        self._open_client = open_client or (lambda settings: AdminClient(settings, logger=_log))

    def delete_records(self, partition: TopicPartition, up_to: int) -> Answered:
        assert up_to > 0, "Kafka takes -1 for everything, and 0 does nothing"
        asked = ClientPartition(partition.topic, partition.partition, up_to)
        try:
            client = self._open_client(self._settings)  # kept to the end: one that goes cancels its requests
            futures = client.delete_records(
                [asked],
                request_timeout=self._request_timeout_s,
                operation_timeout=self._operation_timeout_s,
            )
            [future] = futures.values()
            found = future.result(self._request_timeout_s + FUTURE_GRACE_S)
        except KafkaException as failed:
            error: KafkaError = failed.args[0]
            return Answered(answer=_ANSWERS.get(error.code(), Answer.UNKNOWN), reason=_said(error))
        except NotInTime:
            return Answered(answer=Answer.TIMED_OUT, reason="the client did not answer")
        return Answered(answer=Answer.DONE, reason=f"every replica starts at {found.low_watermark} or later")


def _said(error: KafkaError) -> str:
    return f"{error.name()}: {error.str()}"
