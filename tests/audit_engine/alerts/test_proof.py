"""What people are told, made again from the news, against a record that was made as it came."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from audit_engine.alerts.news import RunNews
from audit_engine.alerts.proof import AgainstRecord, against, steps
from audit_engine.alerts.record import KEEP_MS, Record
from tests.audit_engine.alerts.news import DAY_MS, changed, opened, over, run
from workers.proof import Divergence, Equal, compared

NEWS = [run(1, opened("a"), opened("b")), run(2, changed("a", severity="E")), run(3, over("a"))]


@pytest.fixture
def records(tmp_path: Path) -> Iterator[list[Record]]:
    made = [Record(tmp_path / name) for name in ("rebuilt", "live", "third")]
    yield made
    for each in made:
        each.close()


def _against(records: list[Record], news: list[RunNews], taken: list[RunNews]) -> AgainstRecord:
    rebuilt, live, _ = records
    for each in taken:
        live.take(each, now_ms=each.as_of_ms)
    known = [each for each in news if live.taken().get(each.run) == each.attempt]
    list(steps(rebuilt, known))
    return against(rebuilt, live, news)


def test_the_same_news_come_to_the_same_steps(records: list[Record]) -> None:
    """A step a run, and one for what stands."""
    found = compared(steps(records[0], NEWS), steps(records[1], NEWS))

    assert isinstance(found, Equal)
    assert found.steps == len(NEWS) + 1


def test_a_record_that_was_made_run_by_run_is_equal(records: list[Record]) -> None:
    """Also one that has not heard of the last run yet."""
    found = _against(records, NEWS, NEWS[:2])

    assert isinstance(found.first, Equal)
    assert (found.runs, found.judged_again) == (2, ())
    assert found.messages > 0


def test_a_record_that_was_told_otherwise_diverges_at_its_first_message(records: list[Record]) -> None:
    """Run 2 said something else when it was told than the tables say now."""
    told = [NEWS[0], run(2, changed("a", severity="W"))]

    found = _against(records, NEWS, told)

    assert isinstance(found.first, Divergence)
    assert found.first.at.startswith("run 2, ")


def test_a_run_that_was_judged_again_is_named(records: list[Record]) -> None:
    """Its first attempt is in no table any more, and it is not called equal."""
    again = run(2, changed("a", severity="E"), attempt="again")

    found = _against(records, [NEWS[0], again], NEWS[:2])

    assert found.judged_again == (2,)


def test_what_is_forgotten_in_time_is_no_divergence(records: list[Record]) -> None:
    """The live record drops old messages of threads that went on; one made at once has them."""
    rebuilt, live, _ = records
    early, late = NEWS[:2], run(2 + 2 * KEEP_MS // DAY_MS, over("a"))
    for each in [*early, late]:
        live.take(each, now_ms=each.as_of_ms)
    list(steps(rebuilt, early))
    rebuilt.take(late, now_ms=late.as_of_ms - KEEP_MS)  # nothing of it is old enough to go

    found = against(rebuilt, live, [*early, late])

    assert isinstance(found.first, Equal)
    assert found.forgotten == len(rebuilt.messages()) - len(live.messages())
