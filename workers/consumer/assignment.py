"""One partition in one epoch: its offsets, what stands of its commits, and since when it waits."""

from __future__ import annotations

from workers.consumer.offset_map import OffsetMap
from workers.consumer.offsets import OffsetTracker
from workers.consumer.ports import Start


class Assigned:
    """Changed by `core` alone."""

    __slots__ = (
        "blocking",
        "committed",
        "dirty",
        "epoch",
        "leader_epoch",
        "map",
        "sent",
        "since_s",
        "tracker",
    )

    def __init__(self, epoch: int, start: Start, known: OffsetMap | None, now_s: float) -> None:
        self.epoch = epoch
        self.tracker = OffsetTracker(start.offset)
        self.map = known
        self.leader_epoch = start.leader_epoch  # the highest of a finished record
        self.sent = self.committed = start.offset
        self.dirty = False  # something was finished since the last commit was sent
        self.blocking: int | None = None
        self.since_s = now_s
