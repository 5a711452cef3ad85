"""A real group on a real broker, two replicas of the scaler, and KEDA's calls to them in turn."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import cycle, pairwise
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

DEADLINE_S = 150.0
RPC_S = 60.0
PARTITIONS = 4
THRESHOLD, EXIT, SUSTAIN_S = 200, 60, 8.0
PLENTY = 1_000_000  # records that may be done: more than there will be
METADATA = {
    "lagThreshold": str(THRESHOLD),
    "lagThresholdExit": str(EXIT),
    "sustainSeconds": str(SUSTAIN_S),
    "releaseSeconds": "1.5",
    "samplingIntervalSeconds": "0.25",
    "gapMaxSeconds": "60",
    "drainSeconds": "4",
    "scaleUpIntervalSeconds": "1",
    "coolDownSeconds": "1",
    "rebalanceQuietSeconds": "0.5",
    "helpSeconds": "5",
    "stallSeconds": "300",
    "offsetResetPolicy": "earliest",
}


@contextmanager
def scaler(environ: dict[str, str], folder: Path, name: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`seawall scaler`, as a user would start it: the process, and its address."""
    file = folder / f"{name}.address"
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "seawall", "scaler", "--listen", "127.0.0.1:0", "--metrics-listen",
             "127.0.0.1:0", "--address-file", str(file)],
            env={**os.environ, **environ},
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


def until(
    is_so: Callable[[], bool], meanwhile: Callable[[], None], told: Callable[[], object] = lambda: ""
) -> None:
    last_moment = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < last_moment, f"it did not come to be so: {told()}"
        meanwhile()
        time.sleep(0.05)


class Keda:
    """What KEDA and HPA do with the answers of the scaler's replicas, which they ask in turn."""

    def __init__(self, stubs: list[Any], workload: Workload, log: KafkaLog, metadata: dict[str, str]) -> None:
        self.stubs = stubs
        self._metadata = metadata
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
        ref = pb.ScaledObjectRef(name="orders", namespace="shop", scalerMetadata=self._metadata)
        try:
            answer = self.stubs[number].GetMetrics(pb.GetMetricsRequest(scaledObjectRef=ref), timeout=RPC_S)
            is_active = self.stubs[number].IsActive(ref, timeout=RPC_S).result
        except grpc.RpcError as unknown:
            assert unknown.code() == grpc.StatusCode.UNAVAILABLE, unknown.details()  # noqa: PT017 a value it must not be
            return
        wanted = answer.metricValues[0].metricValueFloat
        self._workload.scale(min(PARTITIONS, wanted) if is_active else 0)

    def since(self, place: int) -> list[Link]:
        return [link for link in self.links if link.place >= place]


class Stage:
    """A topic, its group, two scalers and the calls to them: what both tests play on."""

    def __init__(self, broker: LocalCluster, folder: Path, stack: ExitStack, **metadata: str) -> None:
        name = folder.name
        self.shared = f"{name}-shared"
        self._topic = f"{name}-orders"
        create_topic(broker, self._topic, partitions=PARTITIONS, segment_bytes=None)
        self._writer = Writer(broker, self._topic, "producer", {"linger.ms": 5, "batch.num.messages": 1000})
        group = f"{name}-group"
        self.workload = Workload(broker.bootstrap, group=group, topic=self._topic)
        stack.callback(self.workload.scale, 0)
        self.environ = {"SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap, "SEAWALL_SCALER__TOPIC": self.shared}
        self.servers = [stack.enter_context(scaler(self.environ, folder, each)) for each in ("a", "b")]
        stubs = [
            pb_grpc.ExternalScalerStub(stack.enter_context(grpc.insecure_channel(address)))  # type: ignore[no-untyped-call]
            for _, address in self.servers
        ]
        log = stack.enter_context(
            closing(KafkaLog({"bootstrap.servers": broker.bootstrap}, topic=self.shared))
        )
        self.keda = Keda(
            stubs, self.workload, log, {**METADATA, "consumerGroup": group, "topic": self._topic, **metadata}
        )
        self.sent = 0

    def send(self, records: int) -> None:
        for number in range(records):
            self._writer.send(b"x" * 50, partition=number % PARTITIONS)
        self._writer.flush()
        self.sent += records

    def has_seen_all(self, after: int = 0) -> bool:
        """Whether a sample has all that was sent, done or not."""
        return any(ends(link) == self.sent for link in self.keda.since(after))

    def is_caught_up(self) -> bool:
        """By the last sample itself: a median of three is behind."""
        link = self.keda.links[-1] if self.keda.links else None
        return link is not None and ends(link) == self.sent and waiting(link) == 0

    def is_asleep(self) -> bool:
        return self.workload.replicas == 0 and self.keda.links[-1].word.verdict is Verdict.IDLE

    def said(self, verdict: Verdict, after: int = 0) -> bool:
        return any(link.word.verdict is verdict for link in self.keda.since(after))

    def moved(self, move: Move, after: int = 0) -> bool:
        return any(link.word.move is move for link in self.keda.since(after))

    def until(self, is_so: Callable[[], bool], each_sample: Callable[[], None] = lambda: None) -> None:
        """Call KEDA until it is so, and `each_sample` after each time that samples are new."""
        seen = len(self.keda.links)

        def meanwhile() -> None:
            nonlocal seen
            self.keda()
            if len(self.keda.links) > seen:
                seen = len(self.keda.links)
                each_sample()

        until(is_so, meanwhile, lambda: [(each.sample, each.word) for each in self.keda.links[-3:]])

    def kill(self, number: int) -> None:
        self.servers[number][0].kill()
        self.keda.gone.add(number)


def ends(link: Link) -> int:
    return sum(each.log_end for each in link.sample.partitions)


def waiting(link: Link) -> int:
    return sum(each.log_end - (each.committed or 0) for each in link.sample.partitions)


def test_a_group_wakes_drains_and_sleeps_though_a_scaler_is_killed(
    broker: LocalCluster, tmp_path: Path
) -> None:
    """However slow the machine: whoever wrote last is killed, and the other goes on where both were."""
    with ExitStack() as stack:
        stage = Stage(broker, tmp_path, stack)
        keda = stage.keda
        stage.workload.let(PLENTY)
        stage.until(lambda: stage.said(Verdict.IDLE))  # nobody there, and nothing to do
        stage.send(150)
        stage.until(lambda: stage.workload.replicas == 1)
        stage.until(stage.is_caught_up)
        author = keda.links[-1].by
        before = len(keda.links)
        killed = next(n for n, (process, _) in enumerate(stage.servers) if author.endswith(f":{process.pid}"))
        stage.kill(killed)
        stage.send(150)
        stage.until(lambda: stage.has_seen_all(before))
        stage.until(stage.is_caught_up)
        stage.until(stage.is_asleep)
        explained = call("scaler", "explain", "shop/orders", environ=stage.environ)
        unknown = call("scaler", "explain", "shop/nothing", environ=stage.environ)
        left = stage.servers[1 - killed][0]
        left.send_signal(signal.SIGTERM)
        assert left.wait(DEADLINE_S) == 0

    assert {link.by for link in keda.since(before + 1)} - {author}
    assert [link.place for link in keda.links] == list(range(len(keda.links)))
    assert {link.word.move for link in keda.links} == {Move.HOLD}
    assert (explained.status, "idle" in explained.stdout) == (0, True)
    assert (unknown.status, "shop/orders" in unknown.stderr) == (62, True)


@pytest.mark.long
def test_a_group_is_scaled_for_what_stays_and_not_for_what_passes(
    broker: LocalCluster, tmp_path: Path
) -> None:
    """It wakes, has a spike, recovers from a longer one, has a lag that persists and drains, and sleeps. The
    test lets records be done by the samples that it sees, so what a slow machine does is but take longer."""
    with ExitStack() as stack:
        stage = Stage(broker, tmp_path, stack)
        keda, let = stage.keda, stage.workload.let
        stage.until(lambda: stage.said(Verdict.IDLE))
        stage.send(THRESHOLD // 2)  # wakes it, and is no more than that
        stage.until(lambda: stage.workload.replicas == 1)
        let(PLENTY)
        stage.until(stage.is_caught_up)
        asleep = len(keda.links)
        stage.send(3 * THRESHOLD)  # a spike: gone as soon as it was done
        stage.until(lambda: stage.has_seen_all(asleep))
        stage.until(stage.is_caught_up)
        spiked = len(keda.links)
        let(0)
        stage.send(20 * THRESHOLD)  # takes longer than the lag may stay, and falls all the time
        stage.until(lambda: stage.said(Verdict.RECOVERING, spiked), lambda: let(THRESHOLD // 5))
        let(PLENTY)
        stage.until(stage.is_caught_up)
        recovered = len(keda.links)
        let(0)

        def more_than_is_done() -> None:
            let(20)
            stage.send(60)

        stage.send(THRESHOLD)
        stage.until(lambda: stage.moved(Move.OUT, recovered), more_than_is_done)
        stage.until(lambda: stage.workload.replicas >= 2)
        let(PLENTY)
        stage.until(stage.is_caught_up)
        drained = len(keda.links)
        stage.until(stage.is_asleep)
        explained = call("scaler", "explain", "shop/orders", environ=stage.environ)

    moves = {
        name: [link.word.move for link in keda.links[begin:end] if link.word.move is not Move.HOLD]
        for name, begin, end in (
            ("asleep", 0, asleep),
            ("spike", asleep, spiked),
            ("recovery", spiked, recovered),
            ("persistent", recovered, drained),
        )
    }
    assert (moves["asleep"], moves["spike"], moves["recovery"]) == ([], [], [])
    assert moves["persistent"][0] is Move.OUT
    assert explained.status == 0
    assert explained.stdout.count("scale out") >= 1
    # And by the samples alone, all of them:
    for out in (link for link in keda.links if link.word.move is Move.OUT):
        during = [link for link in keda.links if 0 <= out.sample.at_s - link.sample.at_s <= SUSTAIN_S + 1e-6]
        assert min(waiting(link) for link in during) > EXIT
        assert any(waiting(after) >= waiting(before) for before, after in pairwise(during))
