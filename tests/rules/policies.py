"""Policies for tests: any that is allowed, and trees that may be anything."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from rules.policy import Policy, PolicyRefused, read_policy
from rules.policy.keys import KEYS

DAY_MS = 86_400_000
# Few letters, so that globs overlap; two of them are what internal names begin with.
LETTERS = "ab_"

# From least to most: whichever two tables a topic's local and total retention come from, local is less.
_LOCAL_MS = st.sampled_from([1, 60_000, "1h", "12h", "2d", 3 * DAY_MS])
_TOTAL_MS = st.sampled_from(["3d", "30d", 10 * DAY_MS, "90d", "unlimited", -1])
_LOCAL_BYTES = st.sampled_from([1, "1MiB", "5GB", 10**9])
_TOTAL_BYTES = st.sampled_from(["6GB", "50GiB", 2**40, "unlimited", -1])
_PERMISSION = st.sampled_from(["free", "authorised", "never"])
_PRINCIPAL = st.text(alphabet=st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=6)
_AUTHORISERS = st.just(["*"]) | st.lists(_PRINCIPAL.filter(lambda name: name != "*"), min_size=1, unique=True)

_ENTRIES: dict[str, st.SearchStrategy[Any]] = {
    "total_retention_ms": _TOTAL_MS,
    "total_retention_bytes": _TOTAL_BYTES,
    "local_retention_ms": _LOCAL_MS,
    "local_retention_bytes": _LOCAL_BYTES,
    "record_deletion": _PERMISSION,
    "topic_deletion": _PERMISSION,
    "authorisers": _AUTHORISERS,
    "declare_grace_ms": st.integers(0, 10**12),
    "tiering": st.just(True),
    "upload_bytes_per_s": st.integers(1, 2**63 - 1) | st.just("unlimited"),
    "trim": st.booleans(),
    "remote_deletion": st.booleans(),
    "delete_grace_ms": st.integers(1, 10**12),
    "blast_limit_segments_per_hour": st.integers(1, 1000),
    "backup_window_days": st.integers(1, 400),
    "scrub_interval_ms": st.integers(60_000, 10**12),
    "copy_deadline_ms": st.integers(60_000, 10**12),
    "hold_kafka": st.booleans(),
    "audit_suppress": st.lists(
        st.sampled_from(
            ["RET-05 until 2026-12-31 by team-a: why not", "SEG-07 until 2027-01-02T03:04Z by bob: it: is"]
        ),
        unique=True,
    ),
}
assert set(_ENTRIES) == set(KEYS)

names = st.text(alphabet=LETTERS, min_size=1, max_size=6)
globs = st.text(alphabet=LETTERS + "*", min_size=1, max_size=5).filter(lambda text: "**" not in text)
patterns = names | globs


def tables(pattern: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, dict[str, Any]]]:
    entries = st.fixed_dictionaries({}, optional=_ENTRIES).filter(bool)
    return st.dictionaries(pattern, entries, min_size=1, max_size=6)


def _whole(tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Every topic has a retention and a tier, so that a table's own keys contradict nothing."""
    ground = {
        "total_retention_ms": "90d",
        "local_retention_ms": "1d",
        "tiering": True,
        **tables.get("*", {}),
    }
    return {"topics": {**tables, "*": ground, "__*": ground}}


def _read(tree: dict[str, Any]) -> Policy | None:
    try:
        return read_policy(tree)
    except PolicyRefused:
        return None


# Trees of allowed values: some are refused, for their tables disagree about a topic.
trees = tables(patterns).map(_whole)
policies = trees.map(_read).filter(lambda policy: policy is not None)
