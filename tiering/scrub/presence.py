"""Whether the version that a record names is what stands under its key, by a listing of the key.

A HEAD answers 404 for a key that is gone, for a bucket that is, and for a proxy that is not the store at all.
A listing that came says what is there: only by one is anything called missing.

Owns this judgement. Refuses to ask: it is given the key's versions, the latest first.
"""

from __future__ import annotations

from collections.abc import Sequence

from rules.identity import ObjectRef
from tiering.outcome import Problem
from tiering.scrub.damage import Damage, problem
from tiering.store.interface import ListedVersion


def absence(ref: ObjectRef, versions: Sequence[ListedVersion]) -> Problem | None:
    """What is wrong with where it stands, or None: it is the live version."""
    named = f"version {ref.version_id}"
    latest = next((each for each in versions if each.is_latest), None)
    own = next((e for e in versions if e.version_id == ref.version_id and not e.is_delete_marker), None)
    if own is not None and own.is_latest:
        return None
    if own is None:
        return problem(Damage.MISSING, f"there is no {named}; {_instead(latest, versions)}")
    if latest is None:
        return problem(Damage.OVERWRITTEN, f"{named} is there, and is not the latest")
    if latest.is_delete_marker:
        return problem(Damage.DELETED, f"{named} is there, under delete marker {latest.version_id}")
    detail = f"{named} is there, under version {latest.version_id} of {latest.size_bytes} bytes"
    return problem(Damage.OVERWRITTEN, detail)


def _instead(latest: ListedVersion | None, versions: Sequence[ListedVersion]) -> str:
    if not versions:
        return "nothing is under its key"
    if latest is None or latest.is_delete_marker:
        return f"a delete marker and {len(versions) - 1} other versions are under its key"
    return f"version {latest.version_id} of {latest.size_bytes} bytes stands there instead"
