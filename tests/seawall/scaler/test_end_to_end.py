"""A real group on a real broker, two replicas of the scaler, and KEDA's calls to them in turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest

from seawall.local.broker import LocalCluster
from tests.cluster.produce import Writer, create_topic
from tests.seawall.cli.calling import call
from tests.seawall.scaler.workload import Workload
from workers.scaler.chain import Link
from workers.scaler.serving.contract import externalscaler_pb2 as pb
from workers.scaler.serving.contract import externalscaler_pb2_grpc as pb_grpc
from workers.scaler.shared.kafka import KafkaLog
from workers.scaler.values import Move, Verdict

DEADLINE_S = 60.0
TOPIC, GROUP, SHARED = "scaler-orders", "scaler-group", "scaler-shared"
PARTITIONS = 4
WORK_S = 0.004  # so one consumer does fewer than 250 a second
METADATA = {
    "consumerGroup": GROUP,
    "topic": TOPIC,
    "lagThreshold": "200",
    "lagThresholdExit": "60",
    "sustainSeconds": "1.5",
    "releaseSeconds": "1.5",
    "samplingIntervalSeconds": "0.25",
    "gapMaxSeconds": "5",
    "drainSeconds": "4",
    "scaleUpIntervalSeconds": "1",
    "coolDownSeconds": "1",
    "rebalanceQuietSeconds": "0.5",
    "helpSeconds": "5",
    "stallSeconds": "60",
    "offsetResetPolicy": "earliest",
}


@contextmanager
def scaler(cluster: LocalCluster, folder: Path, name: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`seawall scaler`, as a user would start it: the process, and its address."""
    file = folder / f"{name}.address"
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "seawall", "scaler", "--listen", "127.0.0.1:0", "--metrics-listen",
             "127.0.0.1:0", "--bootstrap", cluster.bootstrap, "--address-file", str(file)],
            env={**os.environ, "SEAWALL_SCALER__TOPIC": SHARED},
            stderr=log,
        )  # fmt: skip
    try:
        until(lambda: file.exists() or process.poll() is not None, lambda: None)
        assert file.exists(), (folder / f"{name}.log").read_text()
        yield process, file.read_text().splitlines()[0]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(DEADLINE_S)


def until(is_so: Callable[[], bool], meanwhile: Callable[[], None]) -> None:
    last_moment = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < last_moment, "it did not come to be so"
        meanwhile()
        time.sleep(0.05)


class Keda:
    """What KEDA and HPA do with the answers of the scaler's replicas, which they ask in turn."""

    def __init__(self, stubs: list[Any], workload: Workload, log: KafkaLog) -> None:
        self.stubs = stubs
        self._turn = cycle(range(len(stubs)))
        self._workload = workload
        self._log = log
        self.links: list[Link] = []
        self.gone: set[int] = set()

    def __call__(self) -> None:
        for each in self._log.read(0.01):
            if not self.links or each.link.place > self.links[-1].place:
                self.links.append(each.link)
        number = next(n for n in self._turn if n not in self.gone)
        ref = pb.ScaledObjectRef(name="orders", namespace="shop", scalerMetadata=METADATA)
        try:
            answer = self.stubs[number].GetMetrics(pb.GetMetricsRequest(scaledObjectRef=ref), timeout=10)
            is_active = self.stubs[number].IsActive(ref, timeout=10).result
        except grpc.RpcError as unknown:
            assert unknown.code() == grpc.StatusCode.UNAVAILABLE, unknown.details()  # noqa: PT017 a value it must not be
            return
        wanted = answer.metricValues[0].metricValueFloat
        self._workload.scale(min(PARTITIONS, wanted) if is_active else 0)

    def since(self, place: int) -> list[Link]:
        return [link for link in self.links if link.place >= place]


@pytest.mark.timeout(150)
def test_a_group_is_scaled_for_what_stays_and_not_for_what_passes(
    broker: LocalCluster, tmp_path: Path
) -> None:
    """It wakes, has a spike, recovers from a longer one, has a lag that persists and drains, and sleeps; one
    of the two scalers is killed on the way, and the other goes on where both were."""
    create_topic(broker, TOPIC, partitions=PARTITIONS, segment_bytes=None)
    writer = Writer(broker, TOPIC, "producer", {"linger.ms": 5, "batch.num.messages": 1000})
    workload = Workload(broker.bootstrap, group=GROUP, topic=TOPIC, work_s=WORK_S)

    def send(records: int) -> None:
        for number in range(records):
            writer.send(b"x" * 50, partition=number % PARTITIONS)
        writer.flush()

    with ExitStack() as stack:
        stack.callback(workload.scale, 0)
        servers = [stack.enter_context(scaler(broker, tmp_path, name)) for name in ("a", "b")]
        stubs = [
            pb_grpc.ExternalScalerStub(stack.enter_context(grpc.insecure_channel(address)))  # type: ignore[no-untyped-call]
            for _, address in servers
        ]
        log = stack.enter_context(closing(KafkaLog({"bootstrap.servers": broker.bootstrap}, topic=SHARED)))
        keda = Keda(stubs, workload, log)

        def last() -> Link | None:
            return keda.links[-1] if keda.links else None

        def is_caught_up() -> bool:
            link = last()
            return link is not None and link.word.is_known and link.word.lag_records == 0

        def said(verdict: Verdict, after: int) -> bool:
            return any(link.word.verdict is verdict for link in keda.since(after))

        until(lambda: said(Verdict.IDLE, 0), keda)  # nobody there, and nothing to do
        asleep = len(keda.links)
        send(260)  # wakes it, and is a spike: gone in little more than a second
        until(lambda: workload.replicas == 1, keda)
        until(is_caught_up, keda)
        spiked = len(keda.links)
        send(1_000)  # takes seconds, and falls all the time
        until(lambda: said(Verdict.RECOVERING, spiked), keda)
        until(is_caught_up, keda)
        recovered = len(keda.links)

        def sending() -> None:
            """More than one consumer does, until there are more."""
            if not any(link.word.move is Move.OUT for link in keda.since(recovered)):
                send(60)
            keda()

        until(lambda: workload.replicas >= 2, sending)
        servers[0][0].kill()
        keda.gone.add(0)
        until(is_caught_up, keda)
        drained = len(keda.links)
        until(lambda: workload.replicas == 0, keda)

        moves = {
            name: [
                link.word.move
                for link in keda.since(begin)
                if link.place < end and link.word.move is not Move.HOLD
            ]
            for name, begin, end in (
                ("asleep", 0, asleep),
                ("spike", asleep, spiked),
                ("recovery", spiked, recovered),
                ("persistent", recovered, drained),
            )
        }
        explained = call(
            "scaler", "explain", "shop/orders",
            environ={"SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap, "SEAWALL_SCALER__TOPIC": SHARED},
        )  # fmt: skip
        unknown = call(
            "scaler", "explain", "shop/nothing",
            environ={"SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap, "SEAWALL_SCALER__TOPIC": SHARED},
        )  # fmt: skip
        servers[1][0].send_signal(signal.SIGTERM)
        assert servers[1][0].wait(DEADLINE_S) == 0

    assert (moves["asleep"], moves["spike"], moves["recovery"]) == ([], [], [])
    assert moves["persistent"][0] is Move.OUT
    assert len({link.by for link in keda.links}) == 2
    assert [link.place for link in keda.links] == list(range(len(keda.links)))
    assert keda.links[-1].word.verdict is Verdict.IDLE
    assert explained.status == 0
    assert explained.stdout.count("scale out") >= 1
    assert (unknown.status, "shop/orders" in unknown.stderr) == (62, True)
