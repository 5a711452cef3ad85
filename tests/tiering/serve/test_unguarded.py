"""Without its guard each promise of the endpoint is broken, and the test that holds it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.tiering.serve import test_instances, test_seam
from tiering.serve.protocol.codes import Code


def breaks(promise: Callable[[], None]) -> bool:
    """Whether the test of a promise fails."""
    try:
        promise()
    except AssertionError:
        return True
    return False


def test_a_leaders_word_that_is_passed_on_sends_clients_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """S1: out of range, as the leader says, inside of the log."""

    async def passed_on(*_: Any) -> Code:
        return Code.OFFSET_OUT_OF_RANGE

    monkeypatch.setattr("tiering.serve.fetch._out_of_range", passed_on)
    assert breaks(test_seam.test_a_hole_between_tier_and_broker_is_come_again_and_never_out_of_range)


def test_without_the_resolved_list_aborted_records_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """S1: a segment's own index would not have the transaction whose marker is in the next one."""

    def nothing(*_: Any) -> Iterator[tuple[int, int]]:
        return iter(())

    monkeypatch.setattr("tiering.reader.opened.Aborted.overlapping", nothing)
    assert breaks(test_seam.test_aborted_transactions_are_told_over_segments)


def test_metadata_that_is_passed_on_names_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    """S2: and a client that knows one leaves for it."""

    def as_it_is(_: Any, __: str, ___: str, found: Any) -> Any:
        return found

    monkeypatch.setattr("tiering.serve.topics._led_by_us", as_it_is)
    assert breaks(test_seam.test_no_answer_names_a_broker)


def test_without_a_look_at_read_anybody_has_the_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """S3: with the endpoint's own rights."""

    async def yes(*_: Any) -> bool:
        return True

    monkeypatch.setattr("tiering.serve.who.Own.may_read", yes)
    assert breaks(test_instances.test_credentials_are_passed_on_and_decide_what_is_read)
