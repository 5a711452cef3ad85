"""What a restore tells closes the findings about exactly what it put back, and the judge calls it legal."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from audit_engine.alerts.message import State
from audit_engine.alerts.outbox.spark import Finished
from audit_engine.alerts.record import Record
from audit_engine.run.reading.spark import Verdicts
from audit_engine.tables.results import FINDINGS
from rules.events import CopyFinished, LogEvent
from rules.machine import Speaker, Told
from rules.machine.verdict import Status
from tests.audit_engine.run.evidence import Evidence
from tests.backup.world import World
from tests.rules.machine.histories import LOG, TOPIC, History, fixture, segment


def lost(count: int) -> History:
    """The tier's first copies removed, and nothing allowed it."""
    h = fixture("ours", versioned=True)
    for index in range(count):
        segment_id, base, end, _ = segment(index)
        h.expunged(segment_id, base, end)
        h.after(minutes=1)
    return h.after(hours=2)


def restored(h: History, *, but_for: int | None = None) -> World:
    """The same done to a world of real records, put back there, and its events told to the history."""
    world = World()
    made = [world.copy(index * 1000, index * 1000 + 1000) for index in range(10)]
    world.expire_below(3000)
    if but_for is not None:
        world.lifecycle_takes(f"{made[but_for].key_stem}.log")
    world.apply(world.plan())
    speaker = Speaker(2**31 - 1, "backup-0123abcd", 1)
    for seq, event in enumerate(world.events):
        assert isinstance(event, LogEvent)
        told = replace(event, log=LOG, topic=TOPIC, occurred_at_ms=h.now_ms, leader_epoch=h.epoch)
        if isinstance(told, CopyFinished):
            h.tier_offset += 1
            index = told.base_offset // 1000
            told = replace(told, segment_id=f"s{index}", metadata_offset=h.tier_offset)
        h.told.append(Told(event=told, speaker=speaker, seq=seq, log_seq=seq, observed_at_ms=h.now_ms))
        h.now_ms += 1
    h.after(minutes=30)
    return world


def statuses(h: History) -> set[tuple[str, tuple[tuple[int, int], ...], Status]]:
    judged = h.judged()
    return {(each.rule_id, each.ranges, each.status) for each in judged.findings}


def test_a_loss_is_closed_by_its_restore_and_no_rule_is_broken_by_it() -> None:
    """Every finding about the prefix is RESTORED; RST-01 and SEG-01 stay silent; nothing new opens."""
    h = lost(3)
    before = statuses(h)
    assert {status for _, _, status in before} == {Status.OPEN}
    assert before

    restored(h)

    after = statuses(h)
    assert {(rule, ranges) for rule, ranges, _ in after} == {(rule, ranges) for rule, ranges, _ in before}
    assert {status for _, _, status in after} == {Status.RESTORED}


def test_what_was_not_put_back_stays_open() -> None:
    """One of the three copies is gone for good: its finding is open still."""
    h = lost(3)

    restored(h, but_for=1)

    still_open = {ranges for _, ranges, status in statuses(h) if status is Status.OPEN}
    assert still_open
    assert all(any(start < 2000 and end > 1000 for start, end in ranges) for ranges in still_open)


def changes_of(verdicts: Verdicts, run: int) -> Counter[str]:
    """What a run put down of findings, by kind of change."""
    [row] = [each for each in verdicts.runs(10) if each["run"] == run]
    return Counter(each["change"] for each in verdicts.rows_of(FINDINGS, row).collect())


@pytest.mark.long
@pytest.mark.timeout(1200)  # three runs of the audit
def test_over_real_tables_a_restore_closes_its_findings_once_and_is_told_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The first run opens them, the one behind the restore closes them, one more changes nothing; people hear
    of each incident twice in all: that it began, and that it is over."""
    h = lost(2)
    evidence = Evidence(spark, tmp_path)
    verdicts = Verdicts(spark, evidence.root)
    record, said = Record(tmp_path / "alerts"), 0
    messages: list[tuple[str, State]] = []
    opened: set[str] = set()
    for act in (lambda: None, lambda: restored(h), lambda: h.after(hours=1)):
        act()
        evidence.add(h.told[said:])
        said = len(h.told)
        evidence.audit().next(h.now_ms)
        for news in Finished(spark, evidence.root).since(record.taken()):
            messages += [(each.thread, each.state) for each in record.take(news, h.now_ms)]
        opened = opened or {each["finding_id"] for each in verdicts.findings() if each["status"] == "open"}
    record.close()

    about_the_log = [each for each in verdicts.findings() if each["rule_id"].startswith("DEL-")]
    assert len(about_the_log) == 2
    assert {each["status"] for each in about_the_log} == {"restored"}
    changes = [changes_of(verdicts, run) for run in (1, 2, 3)]
    assert [each["opened"] for each in changes] == [len(opened), 0, 0]
    assert [each["restored"] for each in changes] == [0, 2, 0]
    threads = {each["incident"] for each in about_the_log}
    told = Counter(each for each in messages if each[0] in threads)
    assert told == Counter((thread, state) for thread in threads for state in (State.OPENED, State.ENDED))
