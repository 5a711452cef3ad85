"""KEDA's contract over a real gRPC channel, with the stubs that protoc made."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from tests.workers.scaler.certificates import Certificates, make_certificates
from tests.workers.scaler.world import QUICK, FakeGroups, desk, wait_until
from workers.scaler.serving.contract import externalscaler_pb2 as pb
from workers.scaler.serving.contract import externalscaler_pb2_grpc as pb_grpc
from workers.scaler.serving.contract.generate import HERE, generate
from workers.scaler.serving.grpc import METRIC, SERVICE, serve
from workers.scaler.serving.tls import Tls

DEADLINE_S = 90.0


@contextmanager
def serving(groups: FakeGroups, *, tls: Tls | None = None) -> Iterator[str]:
    """A server in a thread; its address."""
    listening = threading.Event()
    address: list[str] = []
    stopping: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def run() -> None:
        stop = asyncio.Event()
        stopping.append((asyncio.get_running_loop(), stop))

        def on_listening(at: str) -> None:
            address.append(at)
            listening.set()

        with desk(groups) as at:
            await serve(at, "localhost:0", tls=tls, stop=stop, on_listening=on_listening, heartbeat_s=0.2)

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        assert listening.wait(DEADLINE_S)
        yield address[0]
    finally:
        loop, stop = stopping[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(DEADLINE_S)
        assert not thread.is_alive()


@contextmanager
def keda(groups: FakeGroups) -> Iterator[Any]:
    with serving(groups) as address, grpc.insecure_channel(address) as channel:
        yield pb_grpc.ExternalScalerStub(channel)  # type: ignore[no-untyped-call]


def ref(**more: str) -> pb.ScaledObjectRef:
    return pb.ScaledObjectRef(name="orders", namespace="ns", scalerMetadata={**QUICK, **more})


def code_of(call: Any) -> Any:
    with pytest.raises(grpc.RpcError) as refused:
        call()
    return refused.value.code()


def is_known(stub: Any, asked: pb.ScaledObjectRef) -> bool:
    try:
        stub.IsActive(asked, timeout=DEADLINE_S)
    except grpc.RpcError:
        return False
    return True


def test_all_calls_answer_with_both_kinds_of_numbers() -> None:
    """One metric with the target 1; the float and the int are filled, and the int is rounded up."""
    asked = ref(gapMaxSeconds="60")  # a machine that halts between two calls is no gap
    with keda(FakeGroups(lag=30, members=3)) as stub:
        wait_until(lambda: is_known(stub, asked))
        spec = stub.GetMetricSpec(asked, timeout=DEADLINE_S).metricSpecs[0]
        request = pb.GetMetricsRequest(scaledObjectRef=asked, metricName=METRIC)
        value = stub.GetMetrics(request, timeout=DEADLINE_S).metricValues[0]
        active = stub.IsActive(asked, timeout=DEADLINE_S)

    assert (spec.metricName, spec.targetSize, spec.targetSizeFloat) == (METRIC, 1, 1.0)
    assert (value.metricName, value.metricValue, value.metricValueFloat) == (METRIC, 3, 3.0)
    assert active.result is True


def test_what_is_not_known_is_unavailable() -> None:
    """Before there are samples, and while there are none: no call says zero, and the reason is told."""
    groups = FakeGroups(trouble="no coordinator")
    with keda(groups) as stub:
        request = pb.GetMetricsRequest(scaledObjectRef=ref(), metricName=METRIC)
        codes = {
            code_of(lambda: stub.IsActive(ref(), timeout=DEADLINE_S)),
            code_of(lambda: stub.GetMetrics(request, timeout=DEADLINE_S)),
        }
        spec = stub.GetMetricSpec(ref(), timeout=DEADLINE_S)

    assert codes == {grpc.StatusCode.UNAVAILABLE}
    assert len(spec.metricSpecs) == 1  # HPA is made, and fallback has something to act on


@pytest.mark.parametrize(
    "wrong", [{"lagThreshold": "many"}, {"lagThreshhold": "5"}, {"saslPassword": "hunter2"}, {"cluster": "x"}]
)
def test_a_wrong_key_is_an_invalid_argument_that_names_it(wrong: Mapping[str, str]) -> None:
    """By every call, and never with the value of what is no key of ours."""
    with keda(FakeGroups()) as stub:
        for call in (stub.IsActive, stub.GetMetricSpec):
            with pytest.raises(grpc.RpcError) as refused:
                call(ref(**wrong), timeout=DEADLINE_S)
            assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
            assert f"scalerMetadata.{next(iter(wrong))}" in refused.value.details()
            assert "hunter2" not in refused.value.details()
        request = pb.GetMetricsRequest(scaledObjectRef=ref(), metricName="s0-other")
        assert code_of(lambda: stub.GetMetrics(request, timeout=DEADLINE_S)) == (
            grpc.StatusCode.INVALID_ARGUMENT
        )


def test_a_stream_says_what_is_so_then_what_changes_then_the_same_again() -> None:
    """Idle first, active when a record waits, and a sign of life in between; it ends when nothing is
    known.
    """
    groups = FakeGroups(members=0, lag=0)
    with keda(groups) as stub:
        stream = stub.StreamIsActive(ref(gapMaxSeconds="6"), timeout=DEADLINE_S)
        first, again = next(stream), next(stream)
        groups.lag = 5
        while not (found := next(stream)).result:
            """Signs of life."""
        groups.trouble = "gone"
        with pytest.raises(grpc.RpcError) as ended:
            list(stream)

    assert (first.result, again.result, found.result) == (False, False, True)
    assert ended.value.code() == grpc.StatusCode.UNAVAILABLE


def test_the_stream_of_specs_says_what_the_call_says() -> None:
    """At once, though nothing is known of the group yet."""
    with keda(FakeGroups(trouble="nothing known")) as stub:
        stream = stub.StreamMetricSpec(ref(), timeout=DEADLINE_S)
        streamed = [next(stream), next(stream)]
        called = stub.GetMetricSpec(ref(), timeout=DEADLINE_S)
        stream.cancel()

    assert streamed == [called, called]


def test_health_is_the_standard_service() -> None:
    """For probes: of the whole and of KEDA's service."""
    with serving(FakeGroups()) as address, grpc.insecure_channel(address) as channel:
        health = health_pb2_grpc.HealthStub(channel)

        def status(service: str) -> int:
            asked = health_pb2.HealthCheckRequest(service=service)
            return int(health.Check(asked, timeout=DEADLINE_S).status)

        for service in ("", SERVICE):
            wait_until(lambda service=service: status(service) == health_pb2.HealthCheckResponse.SERVING)  # type: ignore[misc]
        unknown = code_of(lambda: status("other"))

    assert unknown == grpc.StatusCode.NOT_FOUND


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls"))


def test_calls_are_encrypted_and_clients_known_where_that_is_set(certificates: Certificates) -> None:
    """With a client's authority set, whoever shows no certificate of it is not answered."""
    made = certificates
    tls = Tls(cert=made.server_cert, key=made.server_key, client_ca=made.ca)
    ca, key, cert = (file.read_bytes() for file in (made.ca, made.client_key, made.client_cert))
    with serving(FakeGroups(), tls=tls) as address:

        def spec(credentials: Any) -> int:
            with grpc.secure_channel(address, credentials) as channel:
                stub = pb_grpc.ExternalScalerStub(channel)  # type: ignore[no-untyped-call]
                return len(stub.GetMetricSpec(ref(), timeout=DEADLINE_S).metricSpecs)

        known = spec(grpc.ssl_channel_credentials(ca, key, cert))
        stranger = code_of(lambda: spec(grpc.ssl_channel_credentials(ca)))

    assert known == 1
    assert stranger == grpc.StatusCode.UNAVAILABLE


def test_renewed_certificates_are_read_without_a_restart(certificates: Certificates, tmp_path: Path) -> None:
    """The files change under a server that runs; the next connection sees the new ones."""
    cert, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    cert.write_bytes(certificates.server_cert.read_bytes())
    key.write_bytes(certificates.server_key.read_bytes())
    other = make_certificates(tmp_path)
    with serving(FakeGroups(), tls=Tls(cert=cert, key=key)) as address:

        def is_trusted(ca: Path) -> bool:
            credentials = grpc.ssl_channel_credentials(ca.read_bytes())
            with grpc.secure_channel(address, credentials) as channel:
                stub = pb_grpc.ExternalScalerStub(channel)  # type: ignore[no-untyped-call]
                try:
                    stub.GetMetricSpec(ref(), timeout=DEADLINE_S)
                except grpc.RpcError:
                    return False
                return True

        before = is_trusted(certificates.ca)
        cert.write_bytes(other.server_cert.read_bytes())
        key.write_bytes(other.server_key.read_bytes())
        after = is_trusted(other.ca)

    assert (before, after) == (True, True)


def test_the_generated_code_is_what_the_contract_makes(tmp_path: Path) -> None:
    """Nobody edited it. Needs the generator, of the version that the files name."""
    pytest.importorskip("grpc_tools", reason="grpcio-tools is only there for whoever changes the contract")

    made = generate(tmp_path)

    assert {file.name: file.read_text() for file in made} == {
        file.name: (HERE / file.name).read_text() for file in made
    }
