"""Which topics are tiered: by the policy in force, read again now and then.

Owns the last policy that was read, and the settings' patterns beside it. Tiering is opted into: a topic is
copied if the policy in force says so and the settings' patterns, if there are any, take it. Only where no
policy was ever applied to the cluster, patterns are enough. What removes data always needs a policy.

Invariant: while the policy cannot be read, the last one that was read holds; before the first, nothing is
known, and nothing is tiered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rules.policy import Policy, TopicPolicy
from rules.policy.quantities import UNLIMITED, Limit
from tiering.cluster.topics import TopicFilter

REFRESH_MS = 15_000


class PolicyLog(Protocol):
    """The policy in force now; None if none was ever applied. Raises StatedError where it cannot be known."""

    def __call__(self) -> Policy | None: ...


class PolicyWatch:
    """The policy of one agent. For one thread to refresh, and any to ask."""

    def __init__(
        self, read: PolicyLog, *, named: tuple[str, ...], excluded: tuple[str, ...], now_ms: Callable[[], int]
    ) -> None:
        """`named` and `excluded` are the settings' patterns."""
        self._read = read
        self._topics = TopicFilter(include=named or ("*",), exclude=excluded)
        self._opted_in = bool(named)
        self._now_ms = now_ms
        self._policy: Policy | None = None
        self._is_known = False
        self._read_at_ms: int | None = None
        self.trouble = "the policy was not read yet"

    @property
    def is_known(self) -> bool:
        return self._is_known

    def refresh(self) -> None:
        """Read it again if it is time to. A failure is kept as `trouble`; it is not raised."""
        now_ms = self._now_ms()
        is_fresh = self._is_known and not self.trouble
        if is_fresh and self._read_at_ms is not None and now_ms - self._read_at_ms < REFRESH_MS:
            return
        try:
            self._policy = self._read()
        except Exception as failed:  # noqa: BLE001 whatever it is, the last policy holds, and the trouble is told
            self.trouble = str(failed)
            return
        self._is_known, self._read_at_ms, self.trouble = True, now_ms, ""

    def of(self, topic: str) -> TopicPolicy | None:
        """What is declared for a topic; None where nothing is known or was ever declared."""
        return self._policy.effective(topic) if self._policy is not None else None

    def rate_of(self, topic: str) -> Limit:
        """How many bytes a second copying this topic's segments may take."""
        declared = self.of(topic)
        return UNLIMITED if declared is None else declared.upload_bytes_per_s

    def is_tiered(self, topic: str) -> bool:
        """Whether this topic's segments are copied."""
        if not self._is_known or not self._topics.takes(topic):
            return False
        declared = self.of(topic)
        return self._opted_in if declared is None else declared.tiering
