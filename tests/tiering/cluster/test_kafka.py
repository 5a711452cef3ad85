"""Answers that are late, partial or of two epochs, from a client that gives them on demand."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka import Uuid as ClientUuid

from seawall.local.waiting import wait_until
from tiering.cluster.errors import ClientRefused
from tiering.cluster.interface import Cause, DescribedTopic, LeaderOffsets, TopicPartition, Unknown
from tiering.cluster.kafka import REOPEN_INTERVAL_S, KafkaCluster

DEADLINE_S = 30.0
ORDERS = TopicPartition("orders", 0)
TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT))


def done(answer: object) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return future


class FakeClient:
    """A cluster led by broker 1. `offsets` gives (offset, epoch) or an error for each of three questions."""

    def __init__(self, offsets: Callable[[str], Any]) -> None:
        self.offsets = offsets
        self.may_describe = threading.Event()
        self.may_describe.set()
        self.asked: list[object] = []
        self.describes = True

    def describe_topics(self, names: Any, *, request_timeout: float) -> Mapping[str, Future[Any]]:
        may_describe = self.may_describe
        self.asked.append(names)
        may_describe.wait(DEADLINE_S)
        if not self.describes:
            return {name: done(KafkaException(*TIMED_OUT.args)) for name in names.topic_names}
        node = SimpleNamespace(id=1)
        partition = SimpleNamespace(id=0, leader=node, replicas=[node], isr=[node])
        return {
            name: done(SimpleNamespace(name=name, topic_id=ClientUuid(1, 2), partitions=[partition]))
            for name in names.topic_names
        }

    def list_offsets(
        self, asked: Mapping[Any, Any], *, isolation_level: IsolationLevel, request_timeout: float
    ) -> Mapping[Any, Future[Any]]:
        return {each: done(self._answer(spec, isolation_level)) for each, spec in asked.items()}

    def poll(self, timeout_s: float) -> None:
        """There is no callback to run."""

    def _answer(self, spec: Any, isolation: IsolationLevel) -> Any:
        latest = "watermark" if isolation is IsolationLevel.READ_UNCOMMITTED else "stable"
        found = self.offsets(latest if type(spec).__name__ == "LatestSpec" else "earliest")
        if isinstance(found, BaseException):
            return type(found)(*found.args)  # anew: a raised one holds on to all whom it came past
        return SimpleNamespace(offset=found[0], leader_epoch=found[1])


def cluster_of(*clients: FakeClient) -> KafkaCluster:
    """Given one client after the other; the last one stays."""
    left = list(clients)
    return KafkaCluster(
        {"bootstrap.servers": "nowhere:1"},
        monotonic_s=lambda: 0.0,
        open_client=lambda _: left.pop(0),  # type: ignore[arg-type,return-value]
    )


def always(answer: Any) -> Callable[[str], Any]:
    return lambda _: answer


def by_question(**answers: Any) -> Callable[[str], Any]:
    return lambda question: answers[question]


@pytest.mark.parametrize(
    ("offsets", "cause"),
    [
        (by_question(stable=TIMED_OUT, watermark=(9, 1), earliest=(0, 0)), Cause.NO_ANSWER),
        (by_question(stable=(9, 1), watermark=TIMED_OUT, earliest=(0, 0)), Cause.NO_ANSWER),
        (by_question(stable=(9, 1), watermark=(9, 1), earliest=TIMED_OUT), Cause.NO_ANSWER),
        (by_question(stable=(9, 1), watermark=(-1001, None), earliest=(0, 0)), Cause.NO_ANSWER),
        (by_question(stable=(9, 1), watermark=(9, 2), earliest=(0, 0)), Cause.STALE),
        (by_question(stable=(9, None), watermark=(9, None), earliest=(0, 0)), Cause.PARTIAL),
    ],
)
def test_a_partial_answer_is_unknown_and_says_of_what_kind(offsets: Any, cause: Cause) -> None:
    """One of three answers missing, without an epoch or of another one: nothing is made of the other two."""
    cluster = cluster_of(FakeClient(offsets), FakeClient(offsets))

    answer = cluster.leader_offsets([ORDERS])[ORDERS]

    assert isinstance(answer, Unknown)
    assert answer.cause is cause


def test_three_answers_of_one_epoch_make_one() -> None:
    """With nothing missing there is an answer, so that the tests above fail for their reason."""
    cluster = cluster_of(FakeClient(by_question(stable=(7, 1), watermark=(9, 1), earliest=(3, 0))))

    answer = cluster.leader_offsets([ORDERS])[ORDERS]

    assert isinstance(answer, LeaderOffsets)
    assert (answer.log_start, answer.last_stable_offset, answer.high_watermark) == (3, 7, 9)


def test_a_client_that_gets_no_answer_is_replaced_but_not_at_once_again() -> None:
    """A new client is asked in the same call; within the interval, the next call ends with what it has."""
    first, second = FakeClient(always(TIMED_OUT)), FakeClient(always(TIMED_OUT))
    now = [0.0]
    clients = [first, second, FakeClient(always((9, 1)))]
    cluster = KafkaCluster(
        {},
        monotonic_s=lambda: now[0],
        open_client=lambda _: clients.pop(0),  # type: ignore[arg-type,return-value]
    )

    answers = [cluster.leader_offsets([ORDERS])[ORDERS]]
    now[0] = REOPEN_INTERVAL_S - 1
    answers.append(cluster.leader_offsets([ORDERS])[ORDERS])
    now[0] = REOPEN_INTERVAL_S
    answers.append(cluster.leader_offsets([ORDERS])[ORDERS])

    assert [type(each) for each in answers] == [Unknown, Unknown, LeaderOffsets]
    assert (len(first.asked), len(second.asked)) == (1, 3)


def test_what_nobody_described_is_asked_of_a_new_client() -> None:
    """The broker that the old client asks for such things is dead; the new one finds another."""
    dead, fine = FakeClient(always((9, 1))), FakeClient(always((9, 1)))
    dead.describes = False
    cluster = cluster_of(dead, fine)

    answer = cluster.describe_topics(["orders"])["orders"]

    assert isinstance(answer, DescribedTopic)
    assert (len(dead.asked), len(fine.asked)) == (1, 1)


def test_a_client_lives_until_the_last_question_put_to_it_is_answered() -> None:
    """One thread has the client replaced while another waits for it: dropped now, it would cancel that."""
    old, fine = FakeClient(always(TIMED_OUT)), FakeClient(always((9, 1)))
    is_gone = weakref.ref(old)
    cluster = cluster_of(old, fine)
    old.may_describe.clear()
    asked_of_old = old.asked
    answers: list[object] = []
    slow = threading.Thread(target=lambda: answers.append(cluster.describe_topics(["orders"])))
    slow.start()
    wait_until(lambda: len(asked_of_old) == 1, name="slow", wanted="to ask", deadline_s=DEADLINE_S)
    release, old.may_describe = old.may_describe, threading.Event()
    old.may_describe.set()  # the second question is not held up

    answers.append(cluster.leader_offsets([ORDERS]))
    del old

    assert len(fine.asked) == 1
    assert is_gone() is not None
    release.set()
    slow.join(DEADLINE_S)
    assert len(answers) == 2
    assert is_gone() is None


def test_threads_that_all_get_no_answer_take_one_new_client() -> None:
    """Eight of them ask at once; the second new client is not there to be taken."""
    cluster = cluster_of(FakeClient(always(TIMED_OUT)), FakeClient(always((9, 1))))
    answers: list[object] = []
    threads = [
        threading.Thread(target=lambda: answers.append(cluster.leader_offsets([ORDERS])[ORDERS]))
        for _ in range(8)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(DEADLINE_S)

    assert [type(each) for each in answers] == [LeaderOffsets] * 8


@pytest.mark.parametrize(
    "settings",
    [
        {"ssl.ca.location": "no/such/file.pem", "security.protocol": "SSL"},
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "NO-SUCH"},
        {"no.such.setting": "1"},
    ],
)
def test_the_settings_reach_librdkafka_as_they_are(settings: dict[str, str]) -> None:
    """TLS and SASL are librdkafka's own settings; what it refuses of them is said in its own words."""
    with pytest.raises(ClientRefused) as caught:
        KafkaCluster({"bootstrap.servers": "127.0.0.1:1", **settings}, monotonic_s=lambda: 0.0)

    assert caught.value.why
