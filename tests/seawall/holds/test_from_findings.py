"""Which holds findings ask for: critical, open, of this cluster, answered for by nobody; one for each log."""

from __future__ import annotations

from rules.identity import LogId
from seawall.holds.from_findings import Subject, hold_id, subject_of, wanted
from tests.seawall.holds.cases import finding

LOG = LogId("c1", "T1", 0)


def test_an_incident_is_one_hold_on_each_of_its_logs() -> None:
    """Its id is the incident's and the log's; agents are kept off all of it, versions of what it is about."""
    root = finding(LOG, finding_id="root", incident="root", ranges=[[10, 20]], note="lost")
    child = finding(LOG, finding_id="child", incident="root", rule_id="RET-01", ranges=[[30, 40]])
    replica = finding(LOG, finding_id="r", incident="root", subject="c1/T1/0/replica 2", ranges=[[5, 6]])
    elsewhere = finding(LogId("c1", "T1", 1), finding_id="e", incident="root", ranges=[])

    one, two = wanted([child, root, replica, elsewhere], "c1")

    assert (one.log, two.log) == (LOG, LogId("c1", "T1", 1))
    assert (one.asked.start_offset, one.asked.end_offset, one.asked.versions) == (0, None, (5, 40))
    assert (one.asked.finding_id, one.asked.reason) == ("root", "START-02: lost")
    assert two.asked.versions == (0, None)
    assert one.asked.hold_id == hold_id("root", Subject("c1", "T1", 0)) != two.asked.hold_id


def test_what_asks_for_none() -> None:
    """Lesser ones, what is over, what somebody answers for, other clusters', and the auditor's own."""
    others = [
        finding(LOG, severity="E"),
        finding(LOG, status="restored"),
        finding(LOG, suppressed_by="alice"),
        finding(LogId("c2", "T1", 0)),
        finding(LOG, subject="emitter 1/agent"),
        finding(LOG, subject="audit"),
    ]

    assert wanted(others, "c1") == []


def test_a_topic_as_a_whole_has_no_partition() -> None:
    """RET-03 is about a topic: each of its logs is meant."""
    assert subject_of(finding(LOG, subject="c1/T1")) == Subject("c1", "T1", None)
    [only] = wanted([finding(LOG, subject="c1/T1", rule_id="RET-03")], "c1")
    assert only.log is None
