"""From one policy to another: which tables change, for which topics, and what is weakened by it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from rules.policy import KEYS, UNLIMITED, Policy, read_policy
from rules.policy.difference import Change, affected, affected_kinds, changes
from rules.policy.weakening import Weakening
from tests.rules.policies import DAY_MS, names, policies

pytestmark = pytest.mark.slow


def _policy(tables: dict[str, dict[str, Any]]) -> Policy:
    return read_policy({"topics": tables})


def test_changes_are_told_table_by_table() -> None:
    """A key that a table gains, loses or changes is one change, with both values."""
    before = _policy({"a": {"total_retention_ms": "30d", "tiering": True}, "b": {"tiering": True}})
    after = _policy({"a": {"total_retention_ms": "7d", "tiering": True}, "c": {"trim": False}})

    assert list(changes(before, after)) == [
        Change(pattern="a", key="total_retention_ms", before=30 * DAY_MS, after=7 * DAY_MS),
        Change(pattern="b", key="tiering", before=True, after=None),
        Change(pattern="c", key="trim", before=None, after=False),
    ]


def test_topics_are_affected_by_what_holds_for_them() -> None:
    """A table that says what held before affects nobody; one that is gone affects those that it spoke for."""
    before = _policy({"*": {"total_retention_ms": "7d"}, "orders-*": {"total_retention_ms": "90d"}})
    after = _policy({"*": {"total_retention_ms": "7d"}, "clicks": {"total_retention_ms": "7d"}})

    (found,) = affected(before, after, ["clicks", "orders-eu", "users"])

    effects = {effect.key: (effect.before, effect.after) for effect in found.effects}
    assert found.topic == "orders-eu"
    assert effects == {
        "total_retention_ms": (90 * DAY_MS, 7 * DAY_MS),
        "local_retention_ms": (90 * DAY_MS, 7 * DAY_MS),
    }
    assert {str(effect.after_origin) for effect in found.effects} == {"*", "*, by total_retention_ms"}
    assert found.weakens


@pytest.mark.parametrize(
    ("key", "before", "after", "weakening"),
    [
        ("total_retention_ms", 2, 1, Weakening.SHRINKS),
        ("total_retention_ms", UNLIMITED, 1, Weakening.SHRINKS),
        ("total_retention_ms", None, 1, None),
        ("total_retention_ms", 1, None, None),
        ("total_retention_ms", 1, UNLIMITED, None),
        ("local_retention_bytes", 2, 1, Weakening.SHRINKS),
        ("backup_window_days", 7, 3, Weakening.SHRINKS),
        ("delete_grace_ms", 7, 3, Weakening.OPENS),
        ("declare_grace_ms", 3, 7, Weakening.OPENS),
        ("blast_limit_segments_per_hour", 100, 101, Weakening.OPENS),
        ("trim", False, True, Weakening.OPENS),
        ("remote_deletion", False, True, Weakening.OPENS),
        ("tiering", True, False, Weakening.ENDS),
        ("scrub_interval_ms", 3, 7, Weakening.ENDS),
        ("copy_deadline_ms", 60_000, 120_000, Weakening.ENDS),
        ("audit_suppress", (), ("RET-05 until 2026-12-31T00:00Z by bob: why",), Weakening.ENDS),
        ("record_deletion", KEYS["record_deletion"].form.read("never"), None, None),
        ("upload_bytes_per_s", 2, 1, None),
        ("authorisers", ("alice",), ("alice", "bob"), Weakening.OPENS),
        ("authorisers", ("alice",), ("*",), Weakening.OPENS),
        ("authorisers", ("*",), ("alice",), None),
    ],
)
def test_weakening_is_told_from_strengthening(
    key: str, before: Any, after: Any, weakening: Weakening | None
) -> None:
    """What lets go of data that was safe before is marked, and its reverse is not."""
    assert KEYS[key].weakens(before, after) is weakening
    if weakening is not None:
        assert KEYS[key].weakens(after, before) is None


def test_deletion_on_request_weakens_step_by_step() -> None:
    """never, authorised, free: each step to the right opens something."""
    key = KEYS["topic_deletion"]
    steps = [key.form.read(text) for text in ("never", "authorised", "free")]

    judged = [[key.weakens(before, after) for after in steps] for before in steps]

    assert judged == [
        [None, Weakening.OPENS, Weakening.OPENS],
        [None, None, Weakening.OPENS],
        [None, None, None],
    ]


@given(one=policies, other=policies)
def test_no_change_is_no_difference(one: Policy, other: Policy) -> None:
    """Two policies are equal if and only if nothing changes from the one to the other."""
    assert (list(changes(one, other)) == []) == (one == other)
    assert list(affected_kinds(one, one)) == []


@given(one=policies, other=policies, topic=names)
def test_every_topic_that_is_affected_is_of_an_affected_kind(one: Policy, other: Policy, topic: str) -> None:
    """The kinds tell of topics that do not exist yet: the same effects, under the name of an example."""
    found = list(affected(one, other, [topic]))
    kinds = {kind.effects for kind in affected_kinds(one, other)}

    assert {each.effects for each in found} <= kinds


def test_topics_of_a_cell_are_one_kind_whatever_their_name() -> None:
    """An example that has a table of its own does not hide the others of its cell."""
    before = _policy({"a*": {"tiering": True}, "a": {"tiering": False}})
    after = _policy({"a*": {"tiering": False}, "a": {"tiering": False}})

    kinds = {kind.topic: kind.effects for kind in affected_kinds(before, after)}

    assert [(effect.key, effect.before, effect.after) for effect in kinds["a"]] == [("tiering", True, False)]
    assert before.effective("a").tiering is False
