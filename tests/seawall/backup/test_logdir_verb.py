"""`restore-logdir` on a stopped broker's host, where nobody can be asked: checked, paced, done, reported."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from backup.catalogue.bytes import StoredPieces
from backup.logdir.ticket import Ticket, write_ticket
from backup.plan.file import write_plan
from rules.events import RestoreTarget
from seawall.cli.backup import restore_logdir
from tests.backup.logdir.disk import Disk, log_of
from tests.backup.lost_logs import plan_for
from tests.seawall.cli.calling import Called, call
from tiering.segments.records import SegmentState


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(folder=tmp_path / "broker", log=log_of(24), first=14).make()


def test_a_stopped_log_dir_is_restored_and_a_report_signed(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copies that expired: checked without --confirm, then put back; the report says what went where; with
    --undo the directory is as it was, once."""
    plan, report = tmp_path / "the.plan", tmp_path / "report.json"
    removed = [
        replace(each, record=replace(each.record, state=SegmentState.DELETE_FINISHED))
        for each in disk.copies((0, 7), (7, 14))
    ]
    made = plan_for(tuple(removed), RestoreTarget.LOG_DIRECTORY)
    for piece in removed:
        for _, ref in piece.record.objects.present():
            disk.tier.store.mark_deleted(ref.key)
    write_plan(plan, made)
    now_ms = restore_logdir._now_ms()
    ticket = Ticket(plan=made.hash, checked_at_ms=now_ms, brokers=(1,), offline=(), check_interval_ms=300_000)
    write_ticket(plan, ticket)
    monkeypatch.setattr("seawall.connections.segment_store", lambda _: disk.tier.objects)
    before = disk.state()

    def seawall(*arguments: object) -> Called:
        environ = {"XDG_STATE_HOME": str(tmp_path / "state"), "SEAWALL_S3__BUCKET": "memory"}
        return call("backup", *map(str, arguments), environ=environ)

    checked = seawall("restore-logdir", plan, "--log-dir", disk.log_dir)
    unchanged = disk.state()
    done = seawall(
        *("restore-logdir", plan, "--log-dir", disk.log_dir, "--confirm", "--as", "tests"),
        *("--rate", "1GiB", "--report", report),
    )
    believed = seawall("report", report)
    restored = disk.content()[0]
    undone = [seawall("restore-logdir", plan, "--log-dir", disk.log_dir, "--undo") for _ in range(2)]

    assert (checked.status, "2 segments" in checked.stdout) == (0, True), checked.stderr
    assert unchanged == before
    assert done.status == 0, done.stderr
    assert restored == 0
    assert [each.status for each in undone] == [0, 0]
    assert ["as it was before" in each.stdout for each in undone] == [True, False]
    assert disk.state() == before
    assert (believed.status, "restored by tests" in believed.stdout) == (0, True), believed.stderr
    members = json.loads(report.read_text())["seawall_restore"]
    [replica] = members["replicas"]
    joined = disk.log.batches[14].start
    assert members["ranges"] == [[0, joined]]
    assert (members["target"], members["was_over"]) == ("log_directory", False)
    assert (replica["broker_id"], replica["log_start"], replica["joined_at"]) == (1, 0, joined)
    assert len(members["objects"]) == 4


def test_every_byte_that_is_read_waits_for_the_rate(disk: Disk) -> None:
    """What the pace is asked for is what was read, of segments and of what stands beside them."""
    asked: list[int] = []
    [piece] = disk.copies((0, 7))
    stored = StoredPieces(disk.tier.objects, asked.append)

    read_bytes = sum(map(len, stored.segment(piece)))
    assert sum(asked) == read_bytes == piece.record.size_bytes
    stored.side_files(piece)
    assert sum(asked) == read_bytes + piece.aux_object.size_bytes
