"""What was declared for one topic, as far as trimming it on the brokers' disks goes.

Owns the reading of the policy's values: what is undeclared or unlimited is None here, and None keeps. Off
unless it is declared: a policy that says nothing of trim trims nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from rules.policy.quantities import UNLIMITED, Limit
from rules.policy.topic import TopicPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPolicy:
    """`local_*` of None keeps for ever."""

    trims: bool
    local_ms: int | None
    local_bytes: int | None


def local_policy(declared: TopicPolicy) -> LocalPolicy:
    return LocalPolicy(
        trims=declared.trim and declared.tiering,
        local_ms=_limit(declared.local_retention_ms),
        local_bytes=_limit(declared.local_retention_bytes),
    )


def _limit(declared: Limit | None) -> int | None:
    return None if declared is None or declared is UNLIMITED else declared
