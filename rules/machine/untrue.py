"""Whether what the record of a copy says can be true, by itself (SEG-04).

Owns these checks. Refuses to compare with anything but the record. Invariant: of several, the first is told.
"""

from __future__ import annotations

from rules.machine.state import Copy


def untrue(copy: Copy) -> str | None:
    """What cannot be, in words; None if it all can."""
    if copy.base < 0 or copy.base >= copy.end:
        return f"it spans [{copy.base}, {copy.end})"
    if copy.data_end is not None and not copy.base <= copy.data_end <= copy.end:
        return f"its records end at {copy.data_end}"
    if copy.record_count is not None and not 0 <= copy.record_count <= copy.end - copy.base:
        return f"it holds {copy.record_count} records"
    if copy.max_timestamp_ms is not None and copy.max_timestamp_ms < -1:
        return f"its newest time is {copy.max_timestamp_ms}"
    return _wrong_epochs(copy)


def _wrong_epochs(copy: Copy) -> str | None:
    """Epochs and offsets rise, inside the range, and none is above the leader's that copied."""
    for at, (epoch, start) in enumerate(copy.epochs):
        if start >= copy.end or (at and start <= copy.base):  # the first may have begun below
            return f"epoch {epoch} begins at {start}"
        if at and (epoch <= copy.epochs[at - 1][0] or start <= copy.epochs[at - 1][1]):
            return f"epoch {epoch} at {start} comes after {copy.epochs[at - 1]}"
        if epoch < 0 or epoch > copy.leader_epoch >= 0:
            return f"epoch {epoch} is not known to the leader of epoch {copy.leader_epoch} that copied it"
    return None
