"""What is derived from the kinds is as it is checked in: the page and the vectors."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit_engine.wire import decode, encode
from rules.events import KINDS, Event
from seawall.events.described import described, fields_of
from seawall.events.examples import example_envelope
from seawall.events.page import page

REPOSITORY = Path(__file__).parents[3]
VECTORS = REPOSITORY / "tests" / "vectors" / "events"


def test_the_page_is_what_the_classes_say() -> None:
    """docs/EVENTS.md is made anew whenever a kind changes: python -m seawall.events.page > docs/EVENTS.md."""
    assert (REPOSITORY / "docs" / "EVENTS.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_a_vector_is_read_and_written_as_it_was(kind: type[Event]) -> None:
    """The checked-in bytes are the event that they were made from, and it is those bytes."""
    vector = (VECTORS / f"{kind.kind}.json").read_bytes().removesuffix(b"\n")

    envelope = decode(vector)

    assert envelope == example_envelope(kind)
    assert isinstance(envelope.event, kind)
    assert encode(envelope) == vector


def test_every_kind_has_a_vector_and_none_is_left_of_one_that_went() -> None:
    """A kind cannot be dropped in silence: its vector stays, and must be read."""
    assert {each.stem for each in VECTORS.glob("*.json")} == {kind.kind for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.kind)
def test_an_example_shows_every_field(kind: type[Event]) -> None:
    """No value of an example is None, so that the page and the vectors show each field's form."""
    event = example_envelope(kind).event

    assert [each.name for each in fields_of(kind) if getattr(event, each.name) is None] == []


def test_a_kind_is_told_with_its_values_and_their_words() -> None:
    """The words stand in the classes' own comments and docstrings."""
    shown = described(next(kind for kind in KINDS if kind.kind == "segment_deleted_local"))

    assert shown.said_when == "a closed segment's files left a directory that stays"
    removal = next(each for each in shown.own if each.name == "segment_removal")
    assert ("swapped", "compaction put others in their place") in removal.values
