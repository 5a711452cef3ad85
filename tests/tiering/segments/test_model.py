"""The table against its model, on anything that may stand in the topic; and each rule against its lack."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from tests.tiering.segments.histories import OFFSETS, histories
from tests.tiering.segments.model import Guards, Model, Said
from tests.tiering.segments.strategies import LOG
from tests.tiering.segments.topic import new_table
from tiering.outcome import Inconclusive
from tiering.segments.coverage import Coverage, GapPiece, Piece, coverage
from tiering.segments.frontier import Frontier, frontier
from tiering.segments.keys import segment_key
from tiering.segments.rows import Standing
from tiering.segments.table import PartitionTable
from tiering.segments.view import LogView

pytestmark = pytest.mark.slow

GUARDS = [field.name for field in fields(Guards)]
EXAMPLES = 200
SEARCH_EXAMPLES = 10_000
SEED = 3
EAGER = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


def _model(history: list[Said], guards: Guards = Guards(), complete_from: int = 0) -> Model:
    model = Model(guards=guards, complete_from=complete_from)
    for said in history:
        model.take(said)
    return model


def _table(history: list[Said], complete_from: int = 0) -> PartitionTable:
    table = new_table(complete_from)
    for said in history:
        table.apply(said.offset, said.key, said.value)
    return table


def _segments(view: LogView) -> dict[bytes, tuple[str, str | None, int]]:
    """Of each key its standing, its state and where it was said."""
    found: dict[bytes, tuple[str, str | None, int]] = {
        segment_key(LOG, each.segment_id): (each.standing.name, each.state.value, each.metadata_offset)
        for each in view.segments()
    }
    for key, row in zip(view.keys, view.rows, strict=True):
        if row["standing"] == Standing.UNREADABLE:
            found[key] = ("UNREADABLE", None, int(row["offset"]))
    return found


def _model_segments(model: Model) -> dict[bytes, tuple[str, str | None, int]]:
    return {
        key: (each.standing, each.record.state.value if each.record else None, each.offset)
        for key, each in model.segments.items()
    }


def differences(table: PartitionTable, model: Model) -> list[str]:
    """In what the two disagree."""
    view, digest = table.view(LOG), table.digest(LOG)
    if view is None or digest is None:
        return ["the table has nothing"] if model.last else []
    found = []
    if digest.digest != model.digest():
        found.append("digest")
    if _segments(view) != _model_segments(model):
        found.append(f"segments: {_segments(view)} and {_model_segments(model)}")
    if view.record_offset != model.record_offset:
        found.append(f"the log's record: {view.record_offset} and {model.record_offset}")
    shadowed = {key for key, each in model.segments.items() if each.shadowed}
    if model.own_shadowed:
        shadowed.add(LOG_KEY)
    if set(view.shadowed()) != shadowed:
        found.append(f"shadowed: {view.shadowed()} and {shadowed}")
    return found + _coverage_differences(view, model)


def _coverage_differences(view: LogView, model: Model) -> list[str]:
    ours, theirs = frontier(view), model.frontier()
    if isinstance(ours, Inconclusive) or theirs is None:
        return [] if isinstance(ours, Inconclusive) and theirs is None else ["whether there is a frontier"]
    assert isinstance(ours, Frontier)
    if (ours.start, ours.offset) != theirs:
        return [f"frontier: {ours} and {theirs}"]
    covered = coverage(view)
    assert isinstance(covered, Coverage)
    return [
        f"what answers for {offset}"
        for offset in range(OFFSETS + 1)
        if not _answers_alike(covered, model, offset, theirs)
    ]


def _answers_alike(covered: Coverage, model: Model, offset: int, bounds: tuple[int, int]) -> bool:
    answer = covered.find(offset)
    if not bounds[0] <= offset < bounds[1]:
        return answer is None
    if isinstance(answer, Piece):
        return answer.segment_id in model.readers(offset)
    return isinstance(answer, GapPiece) and offset in model.gap_offsets() and not model.readers(offset)


LOG_KEY = f"{LOG.topic_id}:{LOG.partition}".encode("ascii")


@given(histories())
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=EAGER)
def test_the_table_comes_to_what_the_model_says(history: list[Said]) -> None:
    """T2, T6: whatever stands in the topic, what is followed, read and digested is as the rules say it."""
    assert differences(_table(history), _model(history)) == []


@given(histories(), st.integers(0, 20))
@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=EAGER)
def test_a_table_of_a_past_comes_to_what_the_model_says(history: list[Said], complete_from: int) -> None:
    """The same where compaction may have hidden what was before some offset."""
    assert differences(_table(history, complete_from), _model(history, complete_from=complete_from)) == []


@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_rule_something_goes_wrong(guard: str) -> None:
    """No rule is idle: a model that lacks it comes to something else on some history."""
    lacking = Guards(**{guard: False})

    found = find(
        histories(),
        lambda history: bool(differences(_table(history), _model(history, lacking))),
        settings=settings(
            max_examples=SEARCH_EXAMPLES,
            phases=[Phase.generate],
            suppress_health_check=EAGER,
            database=None,
            deadline=None,
        ),
        random=Random(SEED),
    )

    assert differences(_table(found), _model(found)) == []
