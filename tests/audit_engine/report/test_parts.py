"""The parts of a report, without a browser: grouping, comparing, repairing, escaping, coordinates."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from audit_engine.report.changes import changed
from audit_engine.report.drawing import NARROW, WIDE, Label, Scale, picture, placed, ticks_between, window
from audit_engine.report.incidents import incidents, pictured, suppressed
from audit_engine.report.logmap import log_map, story
from audit_engine.report.logs import columns
from audit_engine.report.markup import Markup, embedded, prose, shown, tag
from audit_engine.report.page import page
from audit_engine.report.repair import repair
from audit_engine.report.trend import HEIGHT, heights
from audit_engine.report.values import Gathered, Row, Subject, subject_of
from audit_engine.report.words import TITLES, about, headline, moment, short, span_of
from audit_engine.run.outcomes import told
from rules.catalogue import RULES
from rules.machine.verdict import Verdict
from seawall.cli.app import app
from tests.audit_engine.report.fleets import (
    ALL,
    SHELL,
    dark,
    fault,
    gathered,
    healthy,
    hostile,
    of_faults,
    one_incident,
    passing,
    zoomed,
)
from tests.rules.machine.faults import FAULTS

# --- escaping


@given(st.text())
def test_a_text_stays_a_text(text: str) -> None:
    """Whatever it is: read as HTML it is one element with that text, and no other element."""

    class Reading(HTMLParser):
        tags: list[str]
        said: str

        def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
            self.tags.append(name)
            self.said += "".join(value or "" for _, value in attributes)

        def handle_data(self, text: str) -> None:
            self.said += text

    reading = Reading(convert_charrefs=True)
    reading.tags, reading.said = [], ""
    reading.feed(tag("td", text, title=text))
    reading.close()

    assert reading.tags == ["td"]
    assert reading.said == shown(text) * 2


@given(
    st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_what_is_embedded_ends_no_script(value: object) -> None:
    """It comes back as it was, and has no character that HTML or an old JavaScript could act on."""
    written = embedded(value)

    assert json.loads(written) == value
    assert not re.search("[<>&\u2028\u2029]", written)


def test_what_is_invisible_is_spelled_out() -> None:
    """A text cannot turn itself around, end a line, or hide; other languages stay as they are."""
    assert shown("safe\u202egnp") == "safe\\u{202e}gnp"
    assert shown("a\nb\x00\u2028") == "a\\u{a}b\\u{0}\\u{2028}"
    assert shown("Zürich-日本") == "Zürich-日本"
    assert prose("see `a <b>` now") == "see <code>a &lt;b&gt;</code> now"
    assert tag("input", disabled=True, value=None, class_="x") == '<input disabled class="x">'
    assert isinstance(tag("b"), Markup)


# --- words


def test_each_rule_has_a_title() -> None:
    """And no title is of a rule that is not there."""
    assert set(TITLES) == {each.id for each in RULES}


@pytest.mark.parametrize(
    ("verdict", "counts", "words"),
    [
        ("INDETERMINATE", {}, "that is no pass"),
        ("INDETERMINATE", {"PASS": 3}, "the evidence itself is in doubt"),
        ("INDETERMINATE", {"PASS": 3, "INDETERMINATE": 2}, "Of 2 of 5 logs nothing can be told"),
        ("VIOLATION", {"VIOLATION": 1, "PASS": 1}, "1 of 2 logs violates a rule"),
        ("VIOLATION", {"VIOLATION": 2, "INDETERMINATE": 7}, "Of 7 more nothing can be told"),
        ("SUSPECT", {"SUSPECT": 1, "PASS": 1}, "inside its grace"),
        ("PASS", {"PASS": 2000}, "All 2,000 logs were judged"),
    ],
)
def test_the_headline_says_what_was_not_seen(verdict: str, counts: dict[str, int], words: str) -> None:
    """Whatever is found, logs of which nothing can be told are named; an empty run is no pass."""
    assert words in headline(verdict, counts)


def test_numbers_and_times_are_read_at_a_glance() -> None:
    """Exact where that is short, rounded where it is not; a time that no calendar has is no failure."""
    assert (span_of(604_800_000), span_of(10_080_000), span_of(1)) == ("7 d", "168 min", "1 ms")
    assert (short(1_234_567_890), short(2**62), short(10**11)) == ("1,234,567,890", "4,611,686.018T", "100G")
    assert (about(90_000), about(86_400_000), about(3)) == ("1.5 min", "1 d", "3 ms")
    assert (moment(0), moment(-(2**62)), moment(2**62)) == (
        "1970-01-01 00:00",
        "1970-01-01 00:00",
        "9999-12-31 23:59",
    )


def test_a_subject_is_taken_apart() -> None:
    """A log, a replica of it, a topic, an emitter, and what nobody foresaw."""
    assert subject_of("c/T/3") == Subject(cluster_id="c", topic_id="T", partition=3)
    assert subject_of("c/T/3/replica 1") == Subject(
        cluster_id="c", topic_id="T", partition=3, rest="replica 1"
    )
    assert subject_of("c/T") == Subject(cluster_id="c", topic_id="T", partition=None)
    assert subject_of("c/emitter 1/agent").rest == "emitter 1/agent"
    assert subject_of("nonsense").log is None


# --- incidents


def test_one_fault_is_one_incident() -> None:
    """A root first, its children behind it; what is lost is counted once, though each child tells of it."""
    [one] = incidents(one_incident().findings, one_incident().changes)

    assert [each["rule_id"] for each in one.findings] == [
        "START-02",
        "DEL-01",
        "DEL-01",
        "DEL-01",
        "START-04",
    ]
    assert (one.severity, one.lost_offsets, one.recoverable_offsets, one.change) == ("C", 3_000, 0, "opened")
    assert pictured(one_incident().findings) == list(one.logs)


def test_an_authorised_shrink_is_no_loss() -> None:
    """RET-04 tells of offsets that have no copy: they were let go by a declared change."""
    _, findings, _ = of_faults(fault(8, "none"))

    [one] = incidents([told(each) for each in findings])

    assert (one.severity, one.lost_offsets) == ("W", 0)


def test_what_is_suppressed_is_counted_apart() -> None:
    """It makes no incident, and is not gone."""
    _, findings, _ = of_faults(fault(16, "none"))
    let_be = [told(replace(each, suppressed_by="alice")) for each in findings]

    assert incidents(let_be) == []
    assert len(suppressed(let_be)) == 1
    statements, _, states = of_faults(fault(16, "none"))
    run = gathered(
        statements, findings=[replace(each, suppressed_by="alice") for each in findings], states=states
    )
    assert "1 finding open, and somebody answers for each" in page(run)


@pytest.mark.parametrize("number", sorted({each.number for each in FAULTS}))
def test_every_open_finding_of_every_fault_is_on_the_page(number: int) -> None:
    """With its id, its rule's remedy, and a command: none is lost between the tables and the page."""
    for each in FAULTS:
        if each.number == number:
            run = one_incident(each.make(each.mode))
            text = page(run)
            for finding in run.findings:
                assert (
                    finding["status"] == "withdrawn"
                    or not _is_live(finding, run)
                    or finding["finding_id"] in text
                )
            for one in incidents(run.findings):
                assert tag("p", prose(repair(one.open_findings[0], run).words)) in text


def _is_live(finding: Row, run: Gathered) -> bool:
    return any(each["status"] == "open" for each in run.findings if each["incident"] == finding["incident"])


# --- repair


def test_each_command_is_one_that_seawall_has() -> None:
    """A page never names a verb that does not exist."""
    root = typer.main.get_command(app)
    for each in FAULTS:
        run = one_incident(each.make(each.mode))
        for finding in run.findings:
            commands = repair(finding, run).commands
            assert commands
            for command in commands:
                first, *words = shlex.split(command)
                assert first in ("seawall", "kafka-configs.sh")
                if first == "seawall":
                    _resolve(root, words)


def _resolve(command: typer.core.TyperGroup | object, words: list[str]) -> None:
    context = typer.Context(command)  # type: ignore[arg-type]
    for word in words:
        if not hasattr(command, "get_command"):
            return
        command = command.get_command(context, word)
        assert command is not None, words


def test_a_setting_is_put_back_to_what_was_declared() -> None:
    """Seven days, from the policy: not what was in force before somebody changed it."""
    run = one_incident(fault(7, "kip405"))
    [root] = [each for each in run.findings if each["rule_id"] == "RET-03"]

    assert repair(root, run).commands[1].endswith("--add-config retention.ms=604800000")


def test_a_lost_range_is_read_back_from_our_tier() -> None:
    """Where the tier has it, the command names exactly that range; what repairs it comes first."""
    run = one_incident(fault(4, "ours"))
    [hole] = [each for each in run.findings if each["rule_id"] == "SEG-02"]

    commands = repair(hole, run, ("seawall", "remediate")).commands

    assert commands[0] == f"seawall remediate {hole['finding_id']}"
    assert commands[1] == f"seawall backup plan --finding {hole['finding_id']}"
    assert commands[2] == "seawall read orders:0 --from 4000 --to 5000 --raw 00000000000000004000.log"


def test_a_plan_is_offered_where_copies_are_left() -> None:
    """The very command of `audit explain` and `remediate`; not of what has no copy, or was restored."""
    run = one_incident(fault(4, "ours"))
    [hole] = [each for each in run.findings if each["rule_id"] == "SEG-02"]

    def offers(finding: Row) -> bool:
        return any(each.startswith("seawall backup plan") for each in repair(finding, run).commands)

    assert offers(hole)
    assert not offers({**hole, "recoverable_offsets": 0})
    assert not offers({**hole, "status": "restored"})
    assert not offers({**hole, "rule_id": "RET-03"})


def test_a_topics_name_cannot_become_a_command() -> None:
    """However it is called, it is one word for a shell."""
    run = hostile()
    for finding in run.findings:
        for command in repair(finding, run).commands:
            words = shlex.split(command.replace('"$BOOTSTRAP"', "host:1"))
            assert any(SHELL in word for word in words) or SHELL not in command
            assert "touch" not in words


# --- pictures


def test_a_picture_shows_who_holds_what() -> None:
    """A trimmed prefix whose tier followed: what went, no copy of it, and that nothing had expired."""
    run = one_incident()
    [(_, state)] = run.states.items()

    drawn = log_map(state, run.findings)

    assert drawn is not None
    assert (drawn.low, drawn.high, drawn.start, drawn.watermark) == (0, 10_500, 3_000, 10_500)
    assert (drawn.went, drawn.lost) == (((0, 3_000),), ((0, 3_000),))
    assert drawn.retention is not None
    assert drawn.retention.offset == 0
    assert [each.name for each in drawn.lanes] == ["Tier", "Broker 1, leads", "Broker 2", "Broker 3"]


def test_what_other_disks_hold_is_not_lost() -> None:
    """Dropped by the leader before it was copied: two brokers have it still."""
    run = one_incident(fault(13, "ours"))
    [state] = run.states.values()

    drawn = log_map(state, run.findings)

    assert drawn is not None
    assert (drawn.went, drawn.lost) == (((9_000, 10_000),), ())


def test_the_retention_line_lies_where_records_had_expired() -> None:
    """One hour was declared, and each closed segment was older than that; the active one was not."""
    run = one_incident(fault(8, "none"))
    [state] = run.states.values()

    drawn = log_map(state, run.findings)

    assert drawn is not None
    assert drawn.retention is not None
    assert (drawn.retention.offset, drawn.watermark) == (10_000, 10_500)


def test_the_story_is_told_in_order() -> None:
    """A setting fell, segments went, the start rose, and then it was found."""
    run = one_incident(fault(7, "none"))
    [state] = run.states.values()

    happenings, left_out = story(state, run.findings)

    words = [each.words for each in happenings]
    assert left_out == 0
    assert words[0] == "retention.ms went from 7 d to 1 h"
    assert any(each.startswith("9 segments went from broker 1's disk: [0, 9,000)") for each in words)
    assert [each.at_ms for each in happenings] == sorted(each.at_ms for each in happenings)


def test_a_tiny_loss_in_a_huge_log_is_drawn_large() -> None:
    """Only its surroundings are shown; marks that lie outside say on which side."""
    run = zoomed()
    [state] = run.states.values()
    drawn = log_map(state, run.findings)
    assert drawn is not None

    low, high = window(drawn)
    drawing = picture(drawn, width=WIDE, key="k")

    assert (low, high) == (5_000, 14_000)
    assert "high watermark 1,234,567,890 →" in drawing


@given(
    st.lists(
        st.tuples(st.integers(0, 10**12), st.text("abcdefgh 0123", min_size=1, max_size=28)), max_size=6
    ),
    st.sampled_from([WIDE, NARROW]),
)
def test_labels_never_lie_on_each_other(marks: list[tuple[int, str]], width: int) -> None:
    """Wherever they belong: apart in their row, and inside the picture."""
    scale = Scale(low=0, high=10**12, left=1, right=width - 2)
    labels = [Label(x=scale.x(offset), text=text, class_="") for offset, text in marks]

    laid = placed(labels, scale, width)

    spans = sorted((each.row, each.left, each.left + len(each.label.text) * 7.1) for each in laid)
    for (row, _, end), (other_row, left, _) in pairwise(spans):
        assert row != other_row or end <= left
    assert all(left >= 1 for _, left, _ in spans)
    assert all(end <= width for _, _, end in spans)


@given(st.integers(0, 2**62), st.integers(1, 2**62), st.sampled_from([3, 7]))
def test_a_scale_has_few_round_ticks(low: int, length: int, most: int) -> None:
    """Inside it, evenly apart, never more than a few."""
    ticks = ticks_between(low, low + length, most)

    assert len(ticks) <= most + 1
    assert all(low <= each <= low + length for each in ticks)


@given(
    st.dictionaries(st.sampled_from(["PASS", "SUSPECT", "INDETERMINATE", "VIOLATION"]), st.integers(0, 10**6))
)
def test_a_single_log_is_seen_among_a_million(verdicts: dict[str, int]) -> None:
    """Each verdict that some log has is high enough to be seen, and a bar is as high as any other."""
    found = heights(verdicts)

    assert set(found) == {each for each, logs in verdicts.items() if logs}
    assert all(each >= 4 for each in found.values())
    assert not found or abs(sum(found.values()) - (HEIGHT - 4)) < 0.01


# --- changes, logs, the page


def test_what_is_otherwise_since_the_run_before_is_told() -> None:
    """Verdicts that moved, the worse first; logs that came and went; and no run before is not no change."""
    was = passing(["a", "b"], 2)
    now = [dark(was[0]), was[1], was[2], replace(was[3], topic_id="other")]

    found = changed(gathered(now, before=was))

    assert found is not None
    [moved] = found.moved
    assert (moved.before, moved.now, moved.names, moved.is_worse) == ("PASS", "INDETERMINATE", ("a-0",), True)
    assert (found.new_logs, found.gone_logs) == (1, 1)
    assert changed(gathered(now)) is None
    assert "This is the first run" in page(gathered(now))


def test_logs_are_in_order_of_what_is_worst() -> None:
    """What is lost before what is only violated, then what cannot be told, then the rest, by name."""
    run = one_incident()

    data = columns(run)

    verdicts = [data["verdicts"][each] for each in data["verdict"]]
    assert verdicts == ["VIOLATION"] + ["INDETERMINATE"] * 3 + ["SUSPECT"] + ["PASS"] * 44
    assert data["lost"][0] == 3_000
    assert data["texts"][data["rules"][0][0]] == "DEL-01 Deleted from the tier without a cause"
    assert data["rows"] == len(data["topic"]) == 49


@pytest.mark.parametrize("name", ALL)
def test_a_page_is_one_file_and_always_the_same(name: str) -> None:
    """Made twice, the same bytes; nothing in it points anywhere; the browser may fetch nothing."""
    run = ALL[name]()

    text = page(run)

    assert text == page(run)
    assert "default-src 'none'" in text
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//|data:)""", text)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert len(text) < 1_500_000


def test_not_looked_at_is_never_green() -> None:
    """Where the gate failed, the page says so above all findings, without a green banner; else not at all."""
    healthy_page = page(healthy())
    doubted = healthy()
    gate = [{"name": "clocks", "is_met": False, "detail": "broker 1 runs ahead"}]
    doubted = replace(
        doubted, runs=[*doubted.runs[:-1], {**doubted.run, "gate": gate, "verdict": "INDETERMINATE"}]
    )
    text = page(doubted)

    assert 'id="unknown"' not in healthy_page
    assert text.index('id="unknown"') < text.index('id="incidents"')
    assert "clocks: broker 1 runs ahead" in text
    assert 'class="banner indeterminate"' in text
    assert 'class="banner pass"' not in text


def test_a_verdict_of_each_sort_has_a_page() -> None:
    """The four of them, in the singular and the plural."""
    for verdict in Verdict:
        [log] = passing(["a"], 1)
        text = page(gathered([replace(log, verdict=verdict)]))
        assert f'class="banner {verdict.value.lower()}"' in text
