"""A finding explains itself: its events, its arithmetic, and the command that repairs."""

from __future__ import annotations

import pytest

from rules.machine import newborn
from rules.machine.explained import explain, restore_command
from tests.rules.machine.faults import FAULTS, trimmed_prefix
from tests.rules.machine.histories import TERMS, TOPIC


def test_a_trimmed_prefix_names_the_advance_and_what_was_allowed() -> None:
    """The event that moved the start is cited; retention, ages, and what is left."""
    h = trimmed_prefix("none")
    [root] = [each for each in h.judged().findings if each.rule_id == "START-02"]
    told = explain("START-02", root.finding_id, h.told, newborn(h.log, TOPIC), TERMS, h.now_ms)

    assert told.is_derived
    moved = [each for each in told.cited if each.kind == "log_start_advanced"]
    assert any("old_start=0, new_start=3000" in each.says for each in moved)
    assert all(each.emitter.startswith(("1/", "2/", "3/")) for each in told.cited)
    assert told.required[0].startswith("authorised total retention: 7 d, any size (policy, offset 1)")
    assert "[0, 3000) had to be readable: 3000 offsets" in told.required
    assert told.there[0].startswith("segment [0, 1000), 1048576 bytes: newest record of")
    assert any("leaves [0, 3000): 3000 offsets" in each for each in told.missing)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.name} {fault.mode}")
def test_each_finding_of_each_fault_can_be_derived_again(fault: object) -> None:
    """The fold comes to it, and says something of what was required and what was missing."""
    h = fault.make(fault.mode)  # type: ignore[attr-defined]
    for each in h.judged().findings:
        told = explain(each.rule_id, each.finding_id, h.told, newborn(h.log, TOPIC), TERMS, h.now_ms)
        assert told.is_derived, each.rule_id
        assert told.required, each.rule_id
        assert told.missing, each.rule_id
        assert len({(one.emitter, one.seq) for one in told.cited}) == len(told.cited)


def test_what_the_evidence_does_not_come_to_is_not_made_up() -> None:
    """An id that no finding of this log has."""
    h = trimmed_prefix("none")
    told = explain("START-02", "0" * 32, h.told, newborn(h.log, TOPIC), TERMS, h.now_ms)

    assert (told.is_derived, told.cited, told.missing) == (False, (), ())


def test_a_restore_is_offered_where_bytes_are_to_be_had() -> None:
    """Not for what is closed, what nobody holds, or what no copy makes good."""
    assert restore_command("START-02", "f1", 3000, "open") == "seawall backup plan --finding f1"
    assert restore_command("START-02", "f1", 0, "open") is None
    assert restore_command("START-02", "f1", 3000, "restored") is None
    assert restore_command("RET-05", "f1", 3000, "open") is None
