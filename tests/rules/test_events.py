"""The kinds of events: named once, complete, and nothing but values."""

from __future__ import annotations

import dataclasses
import re
import typing
from pathlib import Path

import pytest

import rules.events
from rules.events import KINDS, ClusterEvent, Event, EventSink, LeadershipClaimed, LogEvent
from rules.identity import LogId

LOG = LogId("MkU3OEVBNTcwNTJENDM2Qk", "CgkTzsXgRlOwPTRJHnL2yg", 3)


IMPORT = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)


def _concrete() -> set[type[Event]]:
    classes = (each for each in vars(rules.events).values() if isinstance(each, type))
    return {each for each in classes if issubclass(each, Event) and "kind" in vars(each)}


def test_every_kind_is_listed_under_a_name_of_its_own() -> None:
    """KINDS holds each event class that has a name, and no two share one."""
    names = [kind.kind for kind in KINDS]

    assert set(KINDS) == _concrete()
    assert len(set(names)) == len(names)


def test_the_name_follows_from_the_class() -> None:
    """A reader who knows the class knows the kind: CopyStarted is copy_started."""
    for kind in KINDS:
        assert kind.kind == re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def test_the_module_says_when_each_kind_is_said() -> None:
    """The table in the package's docstring has one line a kind, and no other."""
    lines = re.findall(r"^    (\w+)  +\S", rules.events.__doc__ or "", flags=re.MULTILINE)

    assert sorted(lines) == sorted(["kind", *(kind.kind for kind in KINDS)])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_an_event_cannot_be_changed_and_names_what_it_is_about(kind: type[Event]) -> None:
    """Every kind is frozen, carries the identity that its retries repeat, and names a log or a cluster."""
    names = {field.name for field in dataclasses.fields(kind)}

    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert {"event_id", "occurred_at_ms"} <= names
    if issubclass(kind, LogEvent):
        assert {"log", "topic", "leader_epoch"} <= names
        assert typing.get_type_hints(kind)["log"] is LogId
    else:
        assert issubclass(kind, ClusterEvent)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_kind_says_when_it_is_said(kind: type[Event]) -> None:
    """Each class has words of its own: docs/EVENTS.md is made of them."""
    said = vars(kind)["__doc__"]

    assert not said.startswith(f"{kind.__name__}(")  # what dataclass writes where there are none
    assert said.rstrip().endswith((".", ":"))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_polled_evidence_is_an_interval_and_the_metadata_logs_has_its_place(kind: type[Event]) -> None:
    """What says where it was read says since when; what may come from a snapshot says so, at an offset."""
    names = {field.name for field in dataclasses.fields(kind)}

    if "source" in names and not {"segment_id", "metadata_partition"} & names:
        assert "not_before_ms" in names
    if "is_coalesced" in names:
        assert {"metadata_offset", "source"} <= names


def test_a_sink_is_anything_that_emits() -> None:
    """A list with a method is a sink: nothing of ours need be inherited."""

    class Kept:
        def __init__(self) -> None:
            self.events: list[LogEvent] = []

        def emit(self, event: LogEvent) -> None:
            self.events.append(event)

    kept = Kept()
    sink: EventSink = kept
    claim = LeadershipClaimed(
        event_id="e1",
        occurred_at_ms=1,
        log=LOG,
        topic="orders",
        leader_epoch=5,
        broker_id=1,
        metadata_offset=7,
    )

    sink.emit(claim)

    assert kept.events == [claim]


def test_rules_import_nothing_of_ours() -> None:
    """The leftmost layer: its modules import the standard library and each other."""
    folder = Path(rules.events.__file__).parent
    sources = [source.read_text(encoding="utf-8") for source in folder.rglob("*.py")]

    imported = {name for text in sources for name in IMPORT.findall(text)}

    assert not imported & {"tiering", "audit_engine", "backup", "workers", "seawall", "tests"}
