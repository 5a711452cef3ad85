"""What a commit says of itself, in Delta's userMetadata: JSON, one object.

    seawall_ingest   1, the version of this form
    token            random, told apart from any other commit's
    number           the commit's txnVersion
    topic, topic_id  what was read
    ranges           {partition: [start, end)} of Kafka offsets that this commit holds, whole
    next             {partition: offset} from which to go on, of every partition known
    replayed         {partition: [[start, end), ...]} that came from the quarantine, if any did

Owns this form and the arithmetic of ranges. Refuses to guess: metadata that is not ours is None.

Invariant: `next` of a commit is `next` of the one before, moved over exactly `ranges`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Offsets: TypeAlias = Mapping[int, int]  # by partition
Range: TypeAlias = tuple[int, int]  # half-open

VERSION = 1
FORM = "seawall_ingest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    token: str
    number: int
    topic: str
    topic_id: str
    ranges: Mapping[int, Range]
    next_offsets: Offsets
    replayed: Mapping[int, tuple[Range, ...]] = field(default_factory=dict)


def written(mark: Mark) -> str:
    members: dict[str, object] = {
        FORM: VERSION,
        "token": mark.token,
        "number": mark.number,
        "topic": mark.topic,
        "topic_id": mark.topic_id,
        "ranges": {str(partition): list(ends) for partition, ends in sorted(mark.ranges.items())},
        "next": {str(partition): offset for partition, offset in sorted(mark.next_offsets.items())},
    }
    if mark.replayed:
        members["replayed"] = {str(p): [list(ends) for ends in each] for p, each in mark.replayed.items()}
    return json.dumps(members, separators=(",", ":"))


def read(text: str | None) -> Mark | None:
    """The mark of a commit of ours, None of any other's."""
    try:
        members = json.loads(text or "")
        if members[FORM] != VERSION:
            return None
        return Mark(
            token=members["token"],
            number=members["number"],
            topic=members["topic"],
            topic_id=members["topic_id"],
            ranges={int(partition): (start, end) for partition, (start, end) in members["ranges"].items()},
            next_offsets={int(partition): offset for partition, offset in members["next"].items()},
            replayed={
                int(partition): tuple((start, end) for start, end in each)
                for partition, each in members.get("replayed", {}).items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def ranges(start: Offsets, end: Offsets) -> dict[int, Range]:
    """What lies from `start` to `end`, partition by partition, none of them empty."""
    return {
        partition: (start.get(partition, 0), offset)
        for partition, offset in sorted(end.items())
        if offset > start.get(partition, 0)
    }


def furthest(*each: Offsets) -> dict[int, int]:
    """The greatest offset of each partition."""
    found: dict[int, int] = {}
    for offsets in each:
        for partition, offset in offsets.items():
            found[partition] = max(found.get(partition, 0), offset)
    return found
