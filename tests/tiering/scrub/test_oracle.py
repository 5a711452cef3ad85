"""The tests' own scrub (tests/faults/scrub.py) and this one say the same of the same buckets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rules.events import ScrubOutcome
from tests.faults.test_scrub import CASES, HandMade
from tests.tiering.scrub.kit import Kit
from tiering.store.patient import patient

# What the oracle calls it, and what this one does: with the name of each object that is wrong.
SAID = {
    "gone": {"aux": "missing"},
    "marked_deleted": {"log": "deleted"},
    "cut_short": {"log": "size"},
    "rotten": {"log": "checksum"},
    "stored_rotten": {"log": "crc_mismatch"},
    "says_more_records": {"log": "differs"},
    "says_another_time": {"log": "differs"},
    "ends_before_the_next": {"log": "hole"},
    "aux_of_another": {"aux": "aux"},
    "aux_garbled": {"aux": "aux"},
    "json_of_another": {"json": "json"},
    "json_garbled": {"json": "json"},
    "second_version": {"log": "overwritten"},
    "stranger": {},
}
# Of no object that a record names, and so not for a scrub to find: where who else tells of it.
OF_OTHERS = {
    "foreign_name": "in no log: seawall tier orphans",
    "strange_upload": "seawall tier orphans",
    "removed_and_there": "seawall tier orphans",
    "gap_on_record": "seawall tier status",
    "unclaimed": "seawall tier status",
}


def good() -> HandMade:
    made = HandMade()
    for number, (base, end) in enumerate([(0, 10), (10, 20), (14, 30), (30, 36)]):
        made.copy(number, base, end)
    return made


def kit_of(made: HandMade, folder: Path) -> Kit:
    kit = Kit(
        store=patient(made.store, sleep=lambda _: None), folder=folder, prefix="seawall", is_claimed=True
    )
    kit.topic = made.topic
    return kit


def test_both_call_a_good_bucket_clean(tmp_path: Path) -> None:
    """And have looked at the same objects, and the same bytes."""
    made = good()
    kit = kit_of(made, tmp_path)

    oracle, report = made.scrubbed(), kit.scrub()

    assert oracle.is_clean
    assert report.counts == {ScrubOutcome.VERIFIED: oracle.objects}
    assert (report.read_bytes, report.segments) == (oracle.size_bytes, oracle.segments)


@pytest.mark.parametrize("harm", [harm for harm, _ in CASES], ids=lambda harm: harm.__name__)
def test_both_find_what_is_wrong(tmp_path: Path, harm: Callable[[HandMade], None]) -> None:
    """Each sort of damage that the oracle knows: found here as well, or somebody else's to tell."""
    made = good()
    harm(made)
    kit = kit_of(made, tmp_path)

    oracle, report = made.scrubbed(), kit.scrub()

    assert not oracle.is_clean
    assert harm.__name__ in SAID.keys() | OF_OTHERS.keys()
    assert kit.problems() == SAID.get(harm.__name__, {})
    assert report.has_findings == (harm.__name__ in SAID)
    assert report.unknown_count == (harm.__name__ == "stranger")
    assert not report.counts[ScrubOutcome.INCONCLUSIVE]
