"""What a finding comes to, once the metadata was read again after it.

    the record names the same objects, finished    it stands
    another state, or no record                    skipped: removed meanwhile
    other objects, or another generation           skipped: a restore was at work; the next run looks again

A removal says so in the topic before it touches an object (T5), and a copy before its first byte. So what was
read after a look tells of all that can have happened before it: nothing waits for a grace.

Owns this comparison. Refuses to judge on metadata that was read before the look.
"""

from __future__ import annotations

from dataclasses import replace

from tiering.outcome import Inconclusive, Skipped
from tiering.scrub.damage import Checked, Reason
from tiering.segments.records import SegmentRecord, SegmentState


def settled(checked: Checked, now: SegmentRecord | None, *, is_followed: bool) -> Checked:
    """The same against the newer record; `is_followed`: it is one that readers follow."""
    then = checked.record
    if now is None or not is_followed or now.state is not SegmentState.COPY_FINISHED:
        said = "the metadata has no record of it now" if now is None else f"it is {now.state.value} now"
        return replace(checked, outcome=Skipped(f"removed meanwhile: {said}"), reason=Reason.REMOVED)
    if (now.objects, now.generation) != (then.objects, then.generation):
        why = f"its record was of generation {then.generation}, and names other objects now"
        return replace(checked, outcome=Skipped(why), reason=Reason.CHANGED)
    return checked


def unsettled(checked: Checked, why: str) -> Checked:
    """The metadata could not be read again: whatever was found, it may be a removal."""
    return replace(checked, outcome=Inconclusive(why), reason=Reason.METADATA)
