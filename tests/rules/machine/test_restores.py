"""What a restore may overlap: the legal ones are silent, and what is wrong has its own rule (decision 35)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rules.events import CopyFinished, CopyStarted, RestoreTarget
from tests.rules.machine import acts
from tests.rules.machine.histories import MIB, History, fixture, newest, segment


def _comes_again(h: History, name: str, base: int, end: int, epoch: int) -> None:
    fields = {"data_end": end, "record_count": end - base, "size_bytes": MIB, "max_timestamp_ms": newest(2)}
    h.tier(CopyStarted, name, base, end, generation=1, leader_epoch=epoch, **fields)
    h.tier(CopyFinished, name, base, end, generation=1, leader_epoch=epoch, objects=(), **fields)


def _restored(h: History, start: int, end: int) -> None:
    acts.restores(h, start, end, RestoreTarget.TIER, broker=None, generation=1, planned=(start, end))


def _with_a_lost_copy(reaches: int, epoch: int) -> History:
    """S2 went, and its restore brings back a copy that reaches into S3, which is live."""
    h = fixture("ours")
    name, base, end, _ = segment(2)
    h.after(minutes=5).expunged(name, base, end)
    h.after(hours=1)
    _comes_again(h, "s2-again", base, reaches, epoch)
    _restored(h, base, end)
    return h


def into_a_copy_of_another_epoch() -> History:
    return _with_a_lost_copy(3_400, epoch=4)


def into_a_copy_of_its_epoch() -> History:
    return _with_a_lost_copy(3_400, epoch=5)


def of_a_range_that_is_live_in_part() -> History:
    """The operator named twice as much as was lost: what is live is found good, and not copied."""
    h = fixture("ours")
    name, base, end, _ = segment(2)
    h.after(minutes=5).expunged(name, base, end)
    h.after(hours=1)
    _comes_again(h, name, base, end, epoch=5)
    _restored(h, base, end + 1_000)
    return h


def of_a_copy_whose_objects_were_gone() -> History:
    """It counted all the while: its next generation stands where the one before it stood."""
    h = fixture("ours").after(hours=1)
    name, base, end, _ = segment(2)
    _comes_again(h, name, base, end, epoch=5)
    _restored(h, base, end)
    return h


def to_a_disk_whose_first_file_begins_below_the_start() -> History:
    """Broker 2 cut its files at 2950: what is put back ends there, and the range where the log began."""
    h = fixture("none")
    for broker in (1, 2, 3):
        h.after(seconds=5).start(broker, 0, 3_000, local=2_950 if broker == 2 else 3_000)
    h.after(hours=1)
    for broker in (1, 2, 3):
        h.start(broker, 3_000, 0, local=0)
    for broker in (1, 2, 3):
        acts.restores(h, 0, 3_000, broker=broker, planned=(0, 3_000))
    return h


CASES: tuple[tuple[Callable[[], History], set[str]], ...] = (
    (into_a_copy_of_another_epoch, set()),
    (into_a_copy_of_its_epoch, {"SEG-03"}),
    (of_a_range_that_is_live_in_part, set()),
    (of_a_copy_whose_objects_were_gone, set()),
    (to_a_disk_whose_first_file_begins_below_the_start, set()),
)


@pytest.mark.parametrize(("make", "rule_ids"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_a_legal_restore_is_not_condemned(make: Callable[[], History], rule_ids: set[str]) -> None:
    """Of what is open at the end nothing is RST-01, and only two copies of one epoch are told."""
    judged = make().after(minutes=30).judged()

    assert {each.rule_id for each in judged.findings if each.status.value == "open"} == rule_ids
    assert "RST-01" not in {each.rule_id for each in judged.findings}
