"""The rate that copying a topic's segments keeps to, where the policy declares one, beside the agent's own.

A topic with a rate has an uploader of its own: small, since it is slow on purpose, and apart, since bytes
that wait for their turn would otherwise keep the others' buffers. 10 MiB for each such topic.

Owns these uploaders. A rate that is declared anew holds from the next segment on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from threading import Lock

from rules.policy.quantities import UNLIMITED, Limit
from tiering.store.content import PIECE_BYTES
from tiering.store.patient import PatientStore
from tiering.store.throttle import Throttle
from tiering.store.upload import PART_BYTES_MIN, Uploader, UploadLimits

FAST = UploadLimits(buffers=4, senders=4)  # 64 MiB: with all else an agent stays below 300 MB
SLOW = UploadLimits(part_bytes=PART_BYTES_MIN, buffers=2, senders=1)


class Uploaders:
    """Who uploads for which topic. For several threads; ended with the stack."""

    def __init__(
        self,
        store: PatientStore,
        rate_of: Callable[[str], Limit],
        *,
        sleep: Callable[[float], None],
        stack: ExitStack,
    ) -> None:
        self._store = store
        self._rate_of = rate_of
        self._sleep = sleep
        self._stack = stack
        self._fast = stack.enter_context(Uploader(store, FAST))
        self._slow: dict[str, tuple[int, Uploader]] = {}
        self._lock = Lock()

    def of(self, topic: str) -> Uploader:
        """The uploader that keeps to the topic's rate of this moment."""
        rate = self._rate_of(topic)
        if rate is UNLIMITED:
            return self._fast
        with self._lock:
            kept = self._slow.get(topic)
            if kept is None or kept[0] != rate:
                pace = Throttle(
                    bytes_per_s=rate, burst_bytes=PIECE_BYTES, clock=time.monotonic, sleep=self._sleep
                )
                made = self._stack.enter_context(Uploader(self._store.paced_by(pace), SLOW))
                kept = self._slow[topic] = (rate, made)
            return kept[1]
