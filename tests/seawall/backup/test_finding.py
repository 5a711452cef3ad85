"""What a finding asks a plan for, and the key that reports are signed with."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from backup.plan import Range
from backup.report import ReportUnusable, checked, members_of, signed
from rules.identity import LogId
from seawall.backup.finding import FindingNotOfALog, found_of
from seawall.backup.keys import report_key
from tests.backup.world import World

LOG = LogId("MkU3OEVBNTcwNTJENDM2Qk", "CgkTzsXgRlOwPTRJHnL2yg", 3)


def row(**fields: Any) -> dict[str, Any]:
    return {
        "finding_id": "0123abcd",
        "rule_id": "START-02",
        "subject": f"{LOG.cluster_id}/{LOG.topic_id}/{LOG.partition}/log",
        "ranges": [[0, 3000], [5000, 6000]],
        "held_by": [2],
        **fields,
    }


def test_a_finding_names_its_log_and_offsets() -> None:
    """From its first range to the end of its last; its id and who holds bytes go into the plan."""
    found = found_of(row())

    assert (found.log, found.range) == (LOG, Range(0, 6000))
    assert found.text == "START-02 0123abcd [0, 3000) [5000, 6000)"
    assert found.details == {"finding_id": "0123abcd", "rule_id": "START-02", "held_by": [2]}


@pytest.mark.parametrize(
    "fields",
    [
        {"subject": f"{LOG.cluster_id}/emitter 1/agent"},
        {"subject": f"{LOG.cluster_id}/{LOG.topic_id}"},
        {"ranges": []},
    ],
)
def test_a_finding_of_no_log_or_no_offsets_is_refused(fields: dict[str, Any]) -> None:
    """There is nothing to plan for."""
    with pytest.raises(FindingNotOfALog):
        found_of(row(**fields))


def test_a_report_is_believed_as_it_was_written(tmp_path: Path) -> None:
    """By its hash without a key, by its signature with one; another key, or a changed offset, is refused."""
    world = World()
    for place in range(3):
        world.copy(10 * place, 10 * place + 10)
    world.expire_below(20)
    key = report_key(None, tmp_path)
    text = signed(members_of(world.apply(world.plan()), "somebody"), key).encode()

    members = checked(text, key, "r")
    assert members["ranges"] == [[0, 20]]
    assert members["principal"] == "somebody"
    with pytest.raises(ReportUnusable, match="not by this key"):
        checked(text, b"x" * 32, "r")
    with pytest.raises(ReportUnusable, match="was changed"):
        checked(text.replace(b"somebody", b"nobodies"), None, "r")
    with pytest.raises(ReportUnusable, match="not the form"):
        checked(b"[]", None, "r")
    unsigned = signed(members, None).encode()
    assert json.loads(unsigned)["signature"] is None
    with pytest.raises(ReportUnusable):
        checked(unsigned, key, "r")


def test_this_hosts_key_is_made_once_and_is_nobody_elses(tmp_path: Path) -> None:
    """The same at the second call, readable by its owner alone; a file of one's own is taken as it is."""
    key = report_key(None, tmp_path)

    assert report_key(None, tmp_path) == key
    assert stat.S_IMODE((tmp_path / "report.key").stat().st_mode) == 0o600
    assert report_key(tmp_path / "report.key", tmp_path / "elsewhere") == key
    (tmp_path / "short").write_text("whsec_AAAA")
    with pytest.raises(ReportUnusable, match="the key must be"):
        report_key(tmp_path / "short", tmp_path)
