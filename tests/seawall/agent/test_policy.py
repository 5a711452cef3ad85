"""Which topics an agent copies: opted in by the policy, or by name where there is no policy."""

from __future__ import annotations

import pytest

from rules.policy import Policy, read_policy
from seawall.agent.policy import REFRESH_MS, PolicyWatch


class Declared:
    """A policy that can be changed, or not be read."""

    def __init__(self, policy: Policy | None) -> None:
        self.policy = policy
        self.is_away = False
        self.reads = 0

    def __call__(self) -> Policy | None:
        self.reads += 1
        if self.is_away:
            raise TimeoutError("nobody answers")
        return self.policy


def _policy(topics: dict[str, dict[str, object]]) -> Policy:
    return read_policy({"version": 1, "topics": topics})


TIERED = _policy({"orders*": {"tiering": True}})


def _watch(
    declared: Declared,
    *,
    named: tuple[str, ...] = (),
    excluded: tuple[str, ...] = (),
    clock: list[int] | None = None,
) -> PolicyWatch:
    times = clock if clock is not None else [0]
    watch = PolicyWatch(declared, named=named, excluded=excluded, now_ms=lambda: times[-1])
    watch.refresh()
    return watch


@pytest.mark.parametrize(
    ("policy", "named", "excluded", "topic", "expected"),
    [
        (TIERED, (), (), "orders-eu", True),
        (TIERED, (), (), "other", False),
        (TIERED, ("orders-us",), (), "orders-eu", False),
        (TIERED, ("other",), (), "other", False),  # named, and the policy does not say so
        (TIERED, (), ("*-eu",), "orders-eu", False),
        (None, (), (), "orders-eu", False),  # nobody opted in
        (None, ("orders*",), (), "orders-eu", True),
        (None, ("*",), (), "__consumer_offsets", False),
        (None, ("*",), (), "__seawall_segments", False),
    ],
)
def test_topics_are_opted_in(
    policy: Policy | None, named: tuple[str, ...], excluded: tuple[str, ...], topic: str, expected: bool
) -> None:
    """A policy decides, patterns narrow it; without a policy patterns alone opt in; internal topics never."""
    assert _watch(Declared(policy), named=named, excluded=excluded).is_tiered(topic) is expected


def test_nothing_is_tiered_before_the_policy_is_known() -> None:
    """Patterns do not stand in for a policy that merely cannot be read."""
    declared = Declared(TIERED)
    declared.is_away = True

    watch = _watch(declared, named=("*",))

    assert (watch.is_known, watch.is_tiered("orders"), watch.trouble) == (False, False, "nobody answers")


def test_last_policy_holds_while_it_cannot_be_read() -> None:
    """A cluster that does not answer opts nobody out; when it answers again, the new policy holds."""
    declared, clock = Declared(TIERED), [0]
    watch = _watch(declared, clock=clock)
    declared.is_away, declared.policy = True, _policy({"orders*": {"tiering": False}})
    clock.append(REFRESH_MS)
    watch.refresh()
    while_away = watch.is_tiered("orders"), watch.trouble
    declared.is_away = False
    watch.refresh()

    assert while_away == (True, "nobody answers")
    assert (watch.is_tiered("orders"), watch.trouble) == (False, "")


def test_policy_is_read_again_only_when_it_is_time() -> None:
    """Passes come with every rolled segment; the policy is asked for now and then."""
    declared, clock = Declared(TIERED), [0]
    watch = _watch(declared, clock=clock)
    for at in (1, REFRESH_MS - 1, REFRESH_MS, REFRESH_MS + 1):
        clock.append(at)
        watch.refresh()

    assert declared.reads == 2
