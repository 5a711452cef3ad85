"""KEDA's calls, answered from the desk. No call waits for Kafka, and none counts calls: their cadence is
KEDA's.

What KEDA does that has to be known (pkg/scalers/external_scaler.go): it reads a float only where it is above
0, else the int, so both are filled; IsActive decides between none and one replica, the metric between one and
many; an error of either is the trigger's `fallback`'s to see to; calls go to the scaler's replicas in turn.

The metric is the number of replicas that is wanted and its target is 1, so that HPA comes to that number
whatever it has (metricType AverageValue, which is KEDA's default).

Invariant: what is not known is UNAVAILABLE, never a value.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from math import ceil
from typing import Any, NoReturn

import grpc  # type: ignore[import-untyped]
from grpc_health.v1 import health, health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from workers.scaler.chain import Link
from workers.scaler.desk import Desk, TooMany, Unknown
from workers.scaler.options import OptionRefused
from workers.scaler.serving.contract import externalscaler_pb2 as pb
from workers.scaler.serving.contract import externalscaler_pb2_grpc as pb_grpc
from workers.scaler.serving.tls import Tls
from workers.scaler.values import Evaluation

METRIC = "seawall-replicas"
TARGET = 1.0
SERVICE = "externalscaler.ExternalScaler"
HEARTBEAT_S = 30.0  # a stream says what it said last, so that a connection that is dead is found
HEALTH_S = 0.5
GRACE_S = 2.0


class Scaler(pb_grpc.ExternalScalerServicer):
    """One desk behind KEDA's service. Belongs to one event loop."""

    def __init__(self, desk: Desk, *, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._desk = desk
        self._heartbeat_s = heartbeat_s
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        desk.on_change(self._on_change)

    async def IsActive(self, request: pb.ScaledObjectRef, context: Any) -> pb.IsActiveResponse:  # noqa: N802 KEDA's
        word = await self._word(request, context)
        return pb.IsActiveResponse(result=word.is_active)

    async def GetMetricSpec(  # noqa: N802 KEDA's
        self, request: pb.ScaledObjectRef, context: Any
    ) -> pb.GetMetricSpecResponse:
        await self._opened(request, context)
        return _spec()

    async def GetMetrics(self, request: pb.GetMetricsRequest, context: Any) -> pb.GetMetricsResponse:  # noqa: N802 KEDA's
        if request.metricName not in ("", METRIC):
            await _refuse(context, grpc.StatusCode.INVALID_ARGUMENT, f"metricName: there is only {METRIC}")
        word = await self._word(request.scaledObjectRef, context)
        value = pb.MetricValue(
            metricName=METRIC, metricValue=ceil(word.replicas), metricValueFloat=word.replicas
        )
        return pb.GetMetricsResponse(metricValues=[value])

    async def StreamIsActive(  # noqa: N802 KEDA's
        self, request: pb.ScaledObjectRef, context: Any
    ) -> AsyncIterator[pb.IsActiveResponse]:
        """What is so at once, then when it changes, and now and then all the same."""
        told: bool | None = None
        told_s = 0.0
        while True:
            changed = self._changed
            key, _ = await self._opened(request, context)  # and so it is not forgotten
            word = self._desk.word(key)
            if isinstance(word, Evaluation):
                is_due = self._loop.time() - told_s >= self._heartbeat_s
                if word.is_active is not told or is_due:
                    told, told_s = word.is_active, self._loop.time()
                    yield pb.IsActiveResponse(result=told)
            elif told is not None:
                await _refuse(context, grpc.StatusCode.UNAVAILABLE, word.why)
            await _within(changed, self._heartbeat_s)

    async def StreamMetricSpec(  # noqa: N802 KEDA's
        self, request: pb.ScaledObjectRef, context: Any
    ) -> AsyncIterator[pb.GetMetricSpecResponse]:
        """It never changes under one scalerMetadata: said at once, and again as a sign of life."""
        while True:
            await self._opened(request, context)
            yield _spec()
            await asyncio.sleep(self._heartbeat_s)

    async def _opened(self, ref: pb.ScaledObjectRef, context: Any) -> tuple[str, object]:
        try:
            return self._desk.opened(ref.namespace, ref.name, dict(ref.scalerMetadata))
        except OptionRefused as refused:
            await _refuse(context, grpc.StatusCode.INVALID_ARGUMENT, str(refused))
        except TooMany as refused:
            await _refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, str(refused))

    async def _word(self, ref: pb.ScaledObjectRef, context: Any) -> Evaluation:
        key, _ = await self._opened(ref, context)
        word = self._desk.word(key)
        if isinstance(word, Unknown):
            await _refuse(context, grpc.StatusCode.UNAVAILABLE, word.why)
        return word

    def _on_change(self, _: Link) -> None:
        """From a thread of the desk's."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        """All who wait now; whoever waits from now on waits for the next."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


async def _within(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except asyncio.TimeoutError:
        return


async def _refuse(context: Any, code: Any, why: str) -> NoReturn:
    await context.abort(code, why)
    raise AssertionError("abort raises")


def _spec() -> pb.GetMetricSpecResponse:
    spec = pb.MetricSpec(metricName=METRIC, targetSize=ceil(TARGET), targetSizeFloat=TARGET)
    return pb.GetMetricSpecResponse(metricSpecs=[spec])


async def serve(
    desk: Desk,
    listen: str,
    *,
    tls: Tls | None,
    stop: asyncio.Event,
    on_listening: Callable[[str], None],
    heartbeat_s: float = HEARTBEAT_S,
) -> None:
    """Until `stop`. Raises OSError where the address cannot be had, or the certificates not be read."""
    server = grpc.aio.server()
    pb_grpc.add_ExternalScalerServicer_to_server(  # type: ignore[no-untyped-call]
        Scaler(desk, heartbeat_s=heartbeat_s), server
    )
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    host = listen.rpartition(":")[0]
    try:
        if tls is None:
            port = server.add_insecure_port(listen)
        else:
            port = server.add_secure_port(listen, _credentials(tls))
    except RuntimeError as refused:
        raise OSError(f"{listen} cannot be listened on: {refused}") from refused
    await server.start()
    on_listening(f"{host}:{port}")
    try:
        while not stop.is_set():
            status = (
                health_pb2.HealthCheckResponse.SERVING
                if desk.is_ready
                else (health_pb2.HealthCheckResponse.NOT_SERVING)
            )
            for name in ("", SERVICE):
                await servicer.set(name, status)
            await _within(stop, HEALTH_S)
    finally:
        await servicer.enter_graceful_shutdown()
        await server.stop(GRACE_S)


def _credentials(tls: Tls) -> Any:
    seen = tls.stamp()

    def config() -> Any:
        key, chain, ca = tls.read()
        return grpc.ssl_server_certificate_configuration([(key, chain)], root_certificates=ca)

    def changed() -> Any:
        """Asked for each connection; None: as before. Files that are half written are read at the next."""
        nonlocal seen
        try:
            found = tls.stamp()
            if found == seen:
                return None
            fresh = config()
        except OSError:
            return None
        seen = found
        return fresh

    return grpc.dynamic_ssl_server_credentials(
        config(), changed, require_client_authentication=tls.client_ca is not None
    )
