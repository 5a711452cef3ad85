"""One record on its way through a consumer: what is known of it beside the record itself.

Made by the hundred thousand and compared by identity, so it is a plain object; only `core` changes it.
"""

from __future__ import annotations

from collections.abc import Hashable

from workers.consumer.records import Record


class Work:
    __slots__ = ("epoch", "failures", "lane", "number", "record", "size_bytes")

    def __init__(self, record: Record, *, epoch: int, lane: Hashable, number: int, size_bytes: int) -> None:
        self.record = record
        self.epoch = epoch  # of the assignment in which it was received
        self.lane = lane  # what it must not overtake in; None where nothing has to wait for it
        self.number = number  # of arrival: the lowest goes first, for it holds the commit back
        self.size_bytes = size_bytes
        self.failures = 0
