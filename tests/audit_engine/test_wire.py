"""Every event comes back as it went, whoever wrote it; what is no event says so."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit_engine.errors import EventError, EventMalformed, EventTooNew
from audit_engine.wire import Emitter, Envelope, Unread, decode, encode
from audit_engine.wire.bodies import body_of
from audit_engine.wire.codec import BODIES
from rules.events import KINDS, CopyFinished, Event, GapCause, GapRecorded, LogEvent, SegmentRejected
from rules.identity import ObjectRef
from tests.audit_engine.events import EVENTS, LOG, envelopes, heartbeat, stalled

pytestmark = pytest.mark.slow

KIND_NAMES = sorted(EVENTS)
PLAIN = Envelope(
    event=stalled(4),
    emitter=Emitter(1, "agent", 1_700_000_000_000),
    emitter_seq=9,
    log_seq=2,
    observed_at_ms=1_005,
)


def _members(envelope: Envelope = PLAIN) -> dict[str, Any]:
    members: dict[str, Any] = json.loads(encode(envelope))
    return members


def _bytes(members: dict[str, Any]) -> bytes:
    return json.dumps(members).encode()


@pytest.mark.parametrize("kind", KIND_NAMES)
@settings(max_examples=40, deadline=None)
@given(chosen=st.data())
def test_an_event_of_every_kind_comes_back(kind: str, chosen: st.DataObject) -> None:
    """decode(encode(envelope)) is the envelope, for any values of any kind."""
    envelope = chosen.draw(envelopes(kind))

    assert decode(encode(envelope)) == envelope


@pytest.mark.parametrize("kind", KIND_NAMES)
@settings(max_examples=40, deadline=None)
@given(chosen=st.data())
def test_a_name_more_survives_wherever_it_stands(kind: str, chosen: st.DataObject) -> None:
    """What a newer writer adds to the envelope, the emitter or the body is there again after reading."""
    newer = _members(chosen.draw(envelopes(kind)))
    newer["sealed_by"] = {"who": [1, None]}
    newer["emitter"]["rack"] = "r1"
    newer["body"]["mood"] = "calm"

    read = decode(_bytes(newer))

    assert isinstance(read.event, Event)
    assert json.loads(encode(read)) == newer


def test_an_unknown_kind_survives() -> None:
    """A kind of tomorrow keeps its envelope and its body, is marked as not read, and written as it came."""
    newer = _members() | {
        "kind": "moon_phase",
        "topic_id": None,
        "partition": None,
        "body": {"beats": [1, 2]},
    }

    read = decode(_bytes(newer))

    assert isinstance(read.event, Unread)
    assert (read.kind, read.emitter_seq, read.event.topic_id) == ("moon_phase", 9, None)
    assert json.loads(encode(read)) == newer


def test_an_event_about_no_log_has_no_place_in_one() -> None:
    """A heartbeat names its cluster only; one that names a log is kept as it came, not half read."""
    members = _members(replace(PLAIN, event=heartbeat(8), log_seq=None))

    assert (members["cluster_id"], members["topic_id"], members["partition"]) == (LOG.cluster_id, None, None)
    assert "cluster_id" not in members["body"]

    members["topic_id"] = LOG.topic_id
    read = decode(_bytes(members))

    assert isinstance(read.event, Unread)
    assert read.event.why == "it has a topic_id, and this kind has none"
    assert json.loads(encode(read)) == members


def test_an_unknown_value_makes_the_body_unread_and_survives() -> None:
    """A cause that a newer writer knows: the event is kept under its kind, with the reason it is not read."""
    members = _members(replace(PLAIN, event=_gap()))
    members["body"]["cause"] = "eaten"

    read = decode(_bytes(members))

    assert isinstance(read.event, Unread)
    assert read.event.why == "cause has a value that is not known here"
    assert json.loads(encode(read)) == members


def test_a_name_more_inside_a_list_is_not_dropped() -> None:
    """An object reference with a name more has no place for it here, so the body is kept as it came."""
    members = _members(replace(PLAIN, event=_finished()))
    members["body"]["objects"][0]["region"] = "eu"

    read = decode(_bytes(members))

    assert isinstance(read.event, Unread)
    assert json.loads(encode(read)) == members


def test_a_field_that_an_older_writer_did_not_know_is_none() -> None:
    """A field that may be None may be absent; another one makes the body unread."""
    event = SegmentRejected(
        event_id="e", occurred_at_ms=1, log=LOG, topic="t", leader_epoch=1,
        base_offset=0, end_offset=9, problem="crc", detail="", position=7,
    )  # fmt: skip
    older = _members(replace(PLAIN, event=event))
    del older["body"]["position"]

    assert decode(_bytes(older)).event == replace(event, position=None)

    del older["body"]["problem"]

    assert isinstance(decode(_bytes(older)).event, Unread)


def test_fields_of_one_name_have_one_type() -> None:
    """One table can hold the bodies of all kinds, with a column a name (DESIGN §7)."""
    types: dict[str, set[Any]] = {}
    for kind, body in BODIES.items():
        hints = get_type_hints(next(each for each in KINDS if each.kind == kind))
        for name in body.readers:
            of_no_none = tuple(hint for hint in get_args(hints[name]) if hint is not type(None))
            is_optional = type(None) in get_args(hints[name])
            types.setdefault(name, set()).add(str(of_no_none[0] if is_optional else hints[name]))

    differing = {name: found for name, found in types.items() if len(found) > 1}

    assert set(differing) <= {"cause"}  # two vocabularies, both text on the wire
    assert "cause" in differing


def test_a_field_without_a_form_is_refused_before_anything_is_written() -> None:
    """A kind with, say, a float fails when its form is derived, not when its first event is lost."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Odd(LogEvent):
        kind: ClassVar[str] = "odd"

        ratio: float

    with pytest.raises(TypeError, match="float"):
        body_of(Odd)


def test_a_record_for_a_newer_reader_says_so() -> None:
    """min_reader beyond ours is not taken for damage."""
    with pytest.raises(EventTooNew):
        decode(_bytes(_members() | {"version": 3, "min_reader": 2}))


@pytest.mark.parametrize("name", ["kind", "event_id", "emitter", "emitter_seq", "body", "version"])
def test_an_envelope_without_its_parts_is_malformed(name: str) -> None:
    """Whoever lacks a part of the envelope is no event."""
    members = _members()
    del members[name]

    with pytest.raises(EventMalformed, match=name):
        decode(_bytes(members))


@given(st.binary(max_size=200) | st.none())
def test_any_bytes_are_an_event_or_an_error_of_ours(value: bytes | None) -> None:
    """Nothing that lies in the topic raises anything else."""
    with pytest.raises(EventError):
        decode(value)


def _gap() -> GapRecorded:
    return GapRecorded(
        event_id="e", occurred_at_ms=1, log=LOG, topic="t", leader_epoch=1,
        start_offset=0, end_offset=4, cause=GapCause.UNKNOWN, metadata_offset=3,
    )  # fmt: skip


def _finished() -> CopyFinished:
    return CopyFinished(
        event_id="e", occurred_at_ms=1, log=LOG, topic="t", leader_epoch=1, segment_id="s", base_offset=0,
        end_offset=4, generation=0, data_end=4, size_bytes=10, record_count=4, max_timestamp_ms=1,
        objects=(ObjectRef("k", 1, "CRC64NVME", "x", None),), metadata_offset=3,
    )  # fmt: skip


def test_the_page_of_formats_names_every_part_of_the_envelope() -> None:
    """docs/FORMATS.md has one line for each name that is written, and no other."""
    page = (Path(__file__).parents[2] / "docs" / "FORMATS.md").read_text(encoding="utf-8")
    section = page.partition("## `__seawall_audit`")[2].partition("### The spool")[0]

    named = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)

    assert sorted(named) == sorted(_members(replace(PLAIN, is_first=True)))
