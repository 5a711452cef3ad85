"""A plan's pieces as a log that the tier's own reader reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from backup.catalogue.bytes import plan_log
from rules.events import RestoreTarget
from tests.backup.logdir.disk import Disk, log_of
from tests.backup.lost_logs import plan_for
from tiering.reader.reader import TieredReader
from tiering.segments.records import SegmentState


def test_removed_copies_are_read_by_their_versions(tmp_path: Path) -> None:
    """As expiry leaves them, under markers and off the record: every record, as while they were live."""
    disk = Disk(folder=tmp_path, log=log_of(14), first=1).make()
    live = disk.copies((0, 7), (7, 14))
    removed = tuple(
        replace(each, record=replace(each.record, state=SegmentState.DELETE_FINISHED)) for each in live
    )
    end = live[-1].end
    with TieredReader(disk.tier.objects) as reader:
        wanted = list(reader.records(plan_log(plan_for(live, RestoreTarget.TOPIC).body), 0, end))
        for each in live:
            for _, ref in each.record.objects.present():
                disk.tier.store.mark_deleted(ref.key)
    with TieredReader(disk.tier.objects) as reader:
        found = list(reader.records(plan_log(plan_for(removed, RestoreTarget.TOPIC).body), 0, end))

    assert found == wanted != []
