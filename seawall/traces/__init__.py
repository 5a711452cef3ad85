"""Traces by OpenTelemetry, off unless a collector is named: which step of what took how long.

    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT | OTEL_EXPORTER_OTLP_ENDPOINT    set: on
    OTEL_SDK_DISABLED=true                                              off, whatever else is set
    TRACEPARENT                                                         what the verb is a step of

The names are OpenTelemetry's own, as are all others that its SDK reads. The SDK is the extra seawall[otel].

    seawall VERB            a verb, from its beginning to its end, with its exit code
    audit run: STEP         the steps of a run, below it
    agent: LOOP             each turn of an agent's loop, by itself

Owns whether there are traces, and what a span may say: names and numbers of ours, no argument, no text of an
error, so that nothing secret can be in one. Refuses to matter: a collector that is away, or a package that is
not there, changes nothing of a verb but for a line on standard error.

Invariant: while it is off nothing of OpenTelemetry is imported, and a span costs a call that does nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Protocol

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PACKAGES = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http")


class Span(Protocol):
    """What goes on."""

    def say(self, name: str, value: str | int) -> None:
        """Something about it."""


class Tracer(Protocol):
    """Where spans go."""

    def span(self, name: str) -> AbstractContextManager[Span]: ...

    def end(self) -> None:
        """Give away what was not given away yet, for a moment at most."""


class _Nothing:
    def say(self, name: str, value: str | int) -> None:
        pass


_OFF: AbstractContextManager[Span] = nullcontext(_Nothing())
_tracer: Tracer | None = None  # one for the process, as a program has one name


def is_wanted(environ: Mapping[str, str]) -> bool:
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    return any(environ.get(name) for name in ENDPOINTS)


@contextmanager
def tracing(say: Callable[[str], None], environ: Mapping[str, str] | None = None) -> Iterator[None]:
    """Traces for as long as this lasts, where they are wanted and can be had."""
    global _tracer
    found = os.environ if environ is None else environ
    if not is_wanted(found):
        yield
        return
    if not all(_is_there(each) for each in PACKAGES):
        say("OTEL_EXPORTER_OTLP_ENDPOINT wants traces, and seawall[otel] is not installed: there are none")
        yield
        return
    from seawall.traces.otel import tracer_of

    _tracer = tracer_of(found)
    try:
        yield
    finally:
        _tracer.end()
        _tracer = None


def is_on() -> bool:
    return _tracer is not None


def span(name: str) -> AbstractContextManager[Span]:
    """What goes on for as long as this lasts; nothing where traces are off."""
    return _OFF if _tracer is None else _tracer.span(name)


@contextmanager
def steps(of: str) -> Iterator[Callable[[str], None]]:
    """Called with a step's name as it begins, which ends the one before; the last ends with this."""
    if _tracer is None:
        yield lambda _: None
        return
    with ExitStack() as current:

        def at(step: str) -> None:
            current.close()
            current.enter_context(span(f"{of}: {step}"))

        yield at


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even what it is in
        return False
