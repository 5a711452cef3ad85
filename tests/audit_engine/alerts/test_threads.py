"""News folded into threads: what is told, in how many messages, under which ids, and when it is over."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit_engine.alerts.message import STOOD_MAX, Message, State, message_of
from audit_engine.alerts.news import Changed, RunNews
from audit_engine.alerts.threads import STORM_OVER, Standing, take
from tests.audit_engine.alerts.news import changed, opened, over, run


def told(*runs: RunNews) -> list[Message]:
    standing = Standing()
    return [message for each in runs for message in take(standing, each)]


def test_an_incident_is_one_message_with_all_that_is_news_of_it() -> None:
    """A root and its children come together, the worst first, the root before its children."""
    child = {"incident": "root", "parent": "root", "rule_id": "DEL-01"}

    [message] = told(run(1, opened("a", **child), opened("root"), opened("b", **child, severity="E")))

    assert (message.thread, message.state, message.severity) == ("root", State.OPENED, "C")
    assert [each.finding["finding_id"] for each in message.stood] == ["root", "a", "b"]
    assert all(each.is_news for each in message.stood)


def test_a_thread_ends_with_its_last_finding() -> None:
    """While a child is open the thread is changed, not ended; then it ends, once."""
    child = {"incident": "root", "parent": "root"}

    messages = told(
        run(1, opened("root"), opened("a", **child)),
        run(2, over("root", "restored")),
        run(3, over("a", "withdrawn", **child)),
    )

    assert [each.state for each in messages] == [State.OPENED, State.CHANGED, State.ENDED]
    assert [each.open_count for each in messages] == [2, 1, 0]


def test_the_same_runs_come_to_the_same_messages() -> None:
    """Ids are of what is told: made again from nothing they are the same, and no two are."""
    runs = [run(1, opened("a"), opened("b")), run(2, changed("a", severity="E")), run(3, over("a"))]

    first, again = told(*runs), told(*runs)

    assert first == again
    assert len({each.id for each in first}) == len(first) == 4


def test_a_run_that_is_taken_in_twice_is_told_once() -> None:
    """Nor is one told anew that was judged again and says the same."""
    standing = Standing()
    first = take(standing, run(1, opened("a")))

    assert take(standing, run(1, opened("a"))) == []
    assert take(standing, run(1, opened("a"), attempt="again")) == []
    assert len(first) == 1


def test_what_a_run_judged_again_does_not_find_is_withdrawn() -> None:
    """The attempt that counts no longer has the finding: it ends, and what it still has stays."""
    standing = Standing()
    take(standing, run(1, opened("a"), opened("b")))

    [message] = take(standing, run(1, opened("b"), attempt="again"))

    assert (message.thread, message.state, message.stood[0].change) == ("a", State.ENDED, "withdrawn")


@pytest.mark.parametrize("how", ["resolved", "withdrawn"])
def test_nothing_is_over_that_no_complete_run_cleared(how: str) -> None:
    """An end that rests on absence waits for a complete run; that run ends it without naming it."""
    standing = Standing()
    take(standing, run(1, opened("a")))

    assert take(standing, run(2, over("a", how), is_complete=False)) == []
    assert take(standing, run(3, is_complete=False)) == []
    [message] = take(standing, run(4))

    assert (message.state, message.stood[0].change, message.run) == (State.ENDED, how, 4)


@pytest.mark.parametrize("how", ["restored", "accepted"])
def test_what_somebody_did_ends_at_once(how: str) -> None:
    """A verified restore and an accepted loss are statements, whatever the slice is like."""
    messages = told(run(1, opened("a")), run(2, over("a", how), is_complete=False))

    assert [each.state for each in messages] == [State.OPENED, State.ENDED]


def test_an_end_that_waits_is_forgotten_when_the_finding_is_open_again() -> None:
    """The next run says that it stands, which is news: nothing ends."""
    messages = told(
        run(1, opened("a")),
        run(2, over("a"), is_complete=False),
        run(3, opened("a")),
        run(4),
    )

    assert [each.state for each in messages] == [State.OPENED, State.CHANGED]


def test_what_ended_and_comes_again_is_opened_again() -> None:
    """The same thread, another message."""
    messages = told(run(1, opened("a")), run(2, over("a")), run(3, opened("a")))

    assert [each.state for each in messages] == [State.OPENED, State.ENDED, State.OPENED]
    assert len({each.id for each in messages}) == 3
    assert {each.thread for each in messages} == {"a"}


def test_a_finding_that_moves_ends_no_thread() -> None:
    """Its root was found: the thread that had it says so once, and ends when the finding does."""
    moved = {"incident": "root", "parent": "root"}

    messages = told(
        run(1, opened("a")),
        run(2, opened("root"), changed("a", **moved)),
        run(3, changed("a", **moved, severity="E")),
        run(4, over("a", **moved), over("root")),
    )

    heard = [(each.run, each.thread, each.state.value) for each in messages]
    assert heard == [
        (1, "a", "opened"),
        (2, "a", "changed"),
        (2, "root", "opened"),
        (3, "root", "changed"),
        (4, "a", "ended"),
        (4, "root", "ended"),
    ]


def test_many_incidents_of_one_rule_at_once_are_one_thread() -> None:
    """Two hundred topics whose retention went wrong page once; beyond the cap they are counted."""
    names = [f"f{number:03}" for number in range(200)]
    alike = {"rule_id": "RET-03", "severity": "E"}
    standing = Standing()

    [message] = take(standing, run(1, *(opened(each, **alike) for each in names), opened("other")))[:1]
    others = take(standing, run(2, *(over(each, **alike) for each in names[1:])))
    last = take(standing, run(3, over(names[0], **alike)))

    assert (message.finding_count, len(message.stood)) == (200, STOOD_MAX)
    assert "RET-03 on 200 incidents of cluster c1" in message.summary
    assert [each.state for each in others] == [State.CHANGED]
    assert [(each.state, each.thread) for each in last] == [(State.ENDED, message.thread)]


def test_few_incidents_of_one_rule_are_threads_of_their_own() -> None:
    """At the bound nothing is put together, nor over clusters."""
    names = [f"f{number}" for number in range(STORM_OVER)]
    elsewhere = [opened(f"g{number}", subject="c2/T1/0") for number in range(STORM_OVER)]

    messages = told(run(1, *(opened(each) for each in names), *elsewhere))

    assert len({each.thread for each in messages}) == 2 * STORM_OVER


def test_what_is_suppressed_is_not_told() -> None:
    """Suppressed later, it stays open and says so; not suppressed any more, it is told."""
    assert told(run(1, opened("a", suppressed_by="team")), run(2, over("a"))) == []

    first, second = told(run(1, opened("b")), run(2, changed("b", suppressed_by="team")))
    assert (second.state, second.stood[0].finding["suppressed_by"]) == (State.CHANGED, "team")
    assert first.state is State.OPENED

    [late] = told(run(1, opened("c", suppressed_by="team")), run(2, changed("c")))
    assert late.state is State.OPENED


def test_what_was_never_open_is_not_told() -> None:
    """It came and went before anybody looked."""
    assert told(run(1, over("a", "restored"))) == []


def test_a_severity_that_rose_is_kept_with_those_before() -> None:
    """Receivers know an alert by its labels: the old ones are still told as long as the finding is open."""
    _, message = told(run(1, opened("a", severity="E")), run(2, changed("a", severity="C")))

    assert message.stood[0].severities == ("E", "C")
    assert message.peak == "C"


def test_a_message_is_the_same_when_it_is_read_back() -> None:
    """What is kept of it is all of it."""
    [message] = told(run(1, opened("a"), opened("b", incident="a", parent="a")))

    assert message_of(message.as_json()) == message


NAMES = ("a", "b", "c")


@st.composite
def histories(draw: st.DrawFn) -> list[RunNews]:
    """Runs whose changes say what a comparison of findings would: each as it is, of what is open or not."""
    is_open = dict.fromkeys(NAMES, False)
    runs = []
    for number in range(1, draw(st.integers(1, 6)) + 1):
        changes: list[Changed] = []
        for name in NAMES:
            incident = draw(st.sampled_from(NAMES))
            where = {"incident": incident, "parent": None if incident == name else incident}
            step = draw(st.sampled_from(("nothing", "open", "end")))
            if step == "open":
                severity = draw(st.sampled_from("WEC"))
                made = changed if is_open[name] else opened
                changes.append(made(name, severity=severity, **where))
                is_open[name] = True
            elif step == "end" and is_open[name]:
                changes.append(
                    over(name, draw(st.sampled_from(("resolved", "restored", "withdrawn"))), **where)
                )
                is_open[name] = False
        runs.append(run(number, *changes, is_complete=draw(st.booleans())))
    return runs


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(histories())
def test_a_thread_is_over_exactly_when_nothing_of_it_is_open(runs: list[RunNews]) -> None:
    """Whatever happens: opened before changed, ended with nothing open, by complete runs or statements."""
    standing, is_open = Standing(), dict.fromkeys(NAMES, False)
    begun: set[str] = set()
    for each in runs:
        for message in take(standing, each):
            assert (message.state is State.OPENED) == (message.thread not in begun)
            assert (message.state is State.ENDED) == (message.open_count == 0)
            ended_by_absence = {
                stood.finding["finding_id"]
                for stood in message.stood
                if stood.is_news and stood.change in ("resolved", "withdrawn")
            }
            assert each.is_complete or not ended_by_absence
            begun = begun - {message.thread} if message.state is State.ENDED else begun | {message.thread}
        for page in each.pages:
            for change in page.changes:
                is_open[change.finding["finding_id"]] = change.finding["status"] == "open"
    take(standing, run(99))
    assert {name for name, kept in standing.findings.items() if kept.is_open} == {
        name for name, still in is_open.items() if still
    }
