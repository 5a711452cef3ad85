"""Spans by OpenTelemetry's SDK, given away over OTLP/HTTP by a thread of its own.

Imported by name, as the package is an extra. What the SDK itself reads (sampler, headers, resource) is the
environment's. Refuses to hold a verb up: what is not given away within END_MS of its end is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from seawall.traces import Span
from seawall.version import version

SERVICE = "seawall"
EXPORT_TIMEOUT_S = 5
END_MS = 5_000


class _Said:
    def __init__(self, span: Any) -> None:
        self._span = span

    def say(self, name: str, value: str | int) -> None:
        self._span.set_attribute(name, value)


class OtelTracer:
    """A `Tracer`."""

    def __init__(self, provider: Any, parent: Any) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("seawall", version() or "source")
        self._parent = parent
        self._status = import_module("opentelemetry.trace")
        self._context = import_module("opentelemetry.context")

    @contextmanager
    def span(self, name: str) -> Iterator[Span]:
        """Below the one that goes on in this thread, else below what the process was started by."""
        context = self._context.get_current() or self._parent
        with self._tracer.start_as_current_span(
            name, context=context, record_exception=False, set_status_on_exception=False
        ) as found:
            try:
                yield _Said(found)
            except BaseException as failed:
                # Its class and no more: a message may have in it what nobody else should read.
                found.set_attribute("error.type", type(failed).__name__)
                if not isinstance(failed, SystemExit):
                    found.set_status(self._status.StatusCode.ERROR)
                raise

    def end(self) -> None:
        self._provider.force_flush(END_MS)
        self._provider.shutdown()


def tracer_of(environ: Mapping[str, str]) -> OtelTracer:
    """By what the environment says of the collector."""
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # a collector that is away is no news
    sdk = import_module("opentelemetry.sdk.trace")
    export = import_module("opentelemetry.sdk.trace.export")
    resources = import_module("opentelemetry.sdk.resources")
    exporter = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    propagation = import_module("opentelemetry.trace.propagation.tracecontext")
    named = {"service.name": environ.get("OTEL_SERVICE_NAME") or SERVICE}
    provider = sdk.TracerProvider(
        resource=resources.Resource.create({**named, "service.version": version() or "source"}),
        shutdown_on_exit=False,  # `end` does, and has its time
    )
    provider.add_span_processor(
        export.BatchSpanProcessor(exporter.OTLPSpanExporter(timeout=EXPORT_TIMEOUT_S))
    )
    carrier = {"traceparent": environ.get("TRACEPARENT", "")}
    parent = propagation.TraceContextTextMapPropagator().extract(carrier)
    return OtelTracer(provider, parent)
