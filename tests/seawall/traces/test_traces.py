"""Traces: off and free unless wanted, and what a collector gets when they are."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from seawall import traces
from seawall.local.waiting import becomes_true

HAS_PACKAGE = find_spec("opentelemetry") is not None and all(map(find_spec, traces.PACKAGES))
NEEDS_PACKAGE = pytest.mark.skipif(not HAS_PACKAGE, reason="opentelemetry is not here: seawall[otel]")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
DEADLINE_S = 60.0


@dataclass(slots=True)
class Collector:
    """Takes OTLP over HTTP, as a real one does, and keeps the spans."""

    url: str = ""
    bodies: list[bytes] = field(default_factory=list)

    def spans(self) -> list[Any]:
        wire = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
        asked = [wire.ExportTraceServiceRequest.FromString(each) for each in self.bodies]
        return [
            span
            for each in asked
            for resource in each.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@pytest.fixture
def collector() -> Iterator[Collector]:
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            found.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def seawall(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, with these variables of OpenTelemetry alone."""
    around = {name: value for name, value in os.environ.items() if not name.startswith(("SEAWALL_", "OTEL_"))}
    code = (
        "import sys; from seawall.cli.app import _run; sys.argv[0] = 'seawall'; status = _run();"
        "print([each for each in sys.modules if each.startswith('opentelemetry')][:1], file=sys.stderr);"
        "sys.exit(status)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**around, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.mark.parametrize(
    ("environ", "is_wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x", "TRACEPARENT": PARENT}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_SDK_DISABLED": "True"}, False),
    ],
)
def test_they_are_on_where_a_collector_is_named(environ: dict[str, str], is_wanted: bool) -> None:
    """And nothing else turns them on."""
    assert traces.is_wanted(environ) is is_wanted


def test_off_it_costs_nothing_and_imports_nothing() -> None:
    """The same object for every span, and no module of the package in a verb's process."""
    with traces.tracing(pytest.fail, {}):
        assert not traces.is_on()
        assert traces.span("one") is traces.span("two")
        with traces.span("one") as nothing, traces.steps("run") as at:
            nothing.say("a", 1)
            at("first")

    done = seawall("rules", "list")
    assert (done.returncode, done.stderr.strip()) == (0, "[]")


def test_wanted_and_not_installed_is_said_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, and no span."""
    said: list[str] = []
    monkeypatch.setattr(traces, "_is_there", lambda _: False)
    with traces.tracing(said.append, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}):
        assert not traces.is_on()
        assert traces.span("one") is traces.span("two")

    [line] = said
    assert "seawall[otel] is not installed" in line


@NEEDS_PACKAGE
def test_a_verb_is_a_span_below_what_started_it(collector: Collector) -> None:
    """Its name without arguments, its exit code, and the trace that TRACEPARENT names."""
    done = seawall(
        "log",
        "verify",
        "/nowhere/secret-place",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        TRACEPARENT=PARENT,
    )

    assert becomes_true(lambda: len(collector.spans()) == 1, deadline_s=DEADLINE_S)
    [span] = collector.spans()
    assert span.name == "seawall log verify"
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == tuple(PARENT.split("-")[1:3])
    codes = [each.value.int_value for each in span.attributes if each.key == "seawall.exit_code"]
    assert codes == [done.returncode]
    assert done.returncode != 0
    assert not any(b"secret-place" in each for each in collector.bodies)


@NEEDS_PACKAGE
def test_steps_are_below_what_they_are_of_and_end_one_another(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order, each ended when the next begins; what fails says the kind of error and no more."""
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)  # which the SDK reads by itself
    with traces.tracing(pytest.fail, environ), pytest.raises(ValueError, match="hidden"):
        _failing_in_a_step()

    spans = {each.name: each for each in collector.spans()}
    outer, read, fold = (spans[name] for name in ("outer", "run: read", "run: fold"))
    assert read.parent_span_id == fold.parent_span_id == outer.span_id
    assert read.end_time_unix_nano <= fold.start_time_unix_nano
    assert [each.value.string_value for each in outer.attributes] == ["ValueError"]
    assert not any(b"hidden" in each for each in collector.bodies)


def _failing_in_a_step() -> None:
    with traces.span("outer"), traces.steps("run") as at:
        at("read")
        at("fold")
        raise ValueError("hidden")


@NEEDS_PACKAGE
def test_a_collector_that_is_away_holds_nothing_up() -> None:
    """The verb's own output and exit code, and no word of it."""
    done = seawall("rules", "list", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")

    assert done.returncode == 0
    assert done.stdout == seawall("rules", "list").stdout
    assert "Traceback" not in done.stderr
