"""An observer's memory: whole, or said to be lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit_engine.errors import MemoryUnusable
from audit_engine.observers.kept import Kept
from tests.audit_engine.events import heartbeat, stalled

KEYS = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=25)  # each keep is synced to the disk
@given(st.lists(st.tuples(st.dictionaries(KEYS, VALUES, max_size=4), st.lists(KEYS, max_size=2)), max_size=4))
def test_what_was_kept_is_there_again(
    tmp_path_factory: pytest.TempPathFactory, keeps: list[tuple[dict[str, object], list[str]]]
) -> None:
    """After any number of changes: the last value of each key that is not gone."""
    path = tmp_path_factory.mktemp("kept") / "memory.sqlite"
    kept, expected = Kept(path, owner="me"), dict[str, object]()
    kept.load(1)
    for changed, gone in keeps:
        kept.keep(changed, gone=gone)
        for key in gone:
            expected.pop(key, None)
        expected |= changed
    kept.close()
    again = Kept(path, owner="me")
    loaded = again.load(2)
    again.close()

    assert loaded == (expected, (), None)


def test_events_wait_until_they_are_out(tmp_path: Path) -> None:
    """Those of the last look that was kept, in their order, over any number of starts."""
    kept = Kept(tmp_path / "memory.sqlite", owner="me")
    kept.load(1)
    kept.keep({}, events=[stalled(1), heartbeat(2)])
    kept.keep({"a": 1}, events=[stalled(3), heartbeat(4)])
    kept.close()
    for _ in range(2):
        kept = Kept(tmp_path / "memory.sqlite", owner="me")
        assert kept.load(2).pending == (stalled(3), heartbeat(4))
        kept.close()
    kept = Kept(tmp_path / "memory.sqlite", owner="me")
    kept.load(2)
    kept.emitted()
    kept.close()

    kept = Kept(tmp_path / "memory.sqlite", owner="me")
    assert kept.load(3) == ({"a": 1}, (), None)
    kept.close()


@pytest.mark.parametrize("table", ["owner", "kept", "pending"])
def test_a_row_that_is_not_what_was_written_loses_the_memory_and_is_said(tmp_path: Path, table: str) -> None:
    """Set aside, whole; what is there from then on is empty, and takes new things."""
    path = tmp_path / "memory.sqlite"
    kept = Kept(path, owner="me")
    kept.load(1)
    kept.keep({"a": "something"}, events=[stalled(1)])
    kept._opened().execute(f"UPDATE {table} SET body = replace(body, 'e', 'E')")
    kept.close()
    kept = Kept(path, owner="me")
    values, pending, damage = kept.load(7)
    kept.keep({"b": 2})
    kept.close()

    assert (values, pending) == ({}, ())
    assert damage is not None
    assert path.with_name(f"{path.name}.unreadable-7").exists()
    kept = Kept(path, owner="me")
    assert kept.load(8) == ({"b": 2}, (), None)
    kept.close()


def test_anothers_memory_is_not_ones_own(tmp_path: Path) -> None:
    """A state folder that was copied from another cluster's agent is no evidence of this one."""
    kept = Kept(tmp_path / "memory.sqlite", owner="another")
    kept.load(1)
    kept.keep({"a": 1})
    kept.close()
    kept = Kept(tmp_path / "memory.sqlite", owner="me")
    values, _, damage = kept.load(2)
    kept.close()

    assert values == {}
    assert "another" in (damage or "")


def test_a_folder_that_does_not_take_it_is_an_error(tmp_path: Path) -> None:
    """Without a memory a change while the agent is down would go unseen."""
    with pytest.raises(MemoryUnusable):
        Kept(tmp_path / "nowhere" / "memory.sqlite", owner="me").load(1)
