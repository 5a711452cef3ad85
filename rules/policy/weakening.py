"""When a change of a value lets go of data that was safe before: one function a kind of value.

Owns the judgement that `seawall policy apply` marks loudly. From or to *undeclared* (None) is neither more
nor less: what was not declared cannot be compared, and nothing of ours deletes under it.

Invariant: a change and its reverse never both weaken.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from rules.policy.quantities import Limit, Unlimited, at_most
from rules.policy.values import ANYONE, Permission, Value

Judge: TypeAlias = Callable[["Value | None", "Value | None"], "Weakening | None"]


class Weakening(str, Enum):
    SHRINKS = "shrinks"  # kept, or to be had back, for less long or less of it
    OPENS = "opens"  # something may be destroyed that might not before, or sooner, or by more people
    ENDS = "ends"  # something that protects is no longer done, or less often


def never(before: Value | None, after: Value | None) -> Weakening | None:
    return None


def when_less(kind: Weakening) -> Judge:
    return lambda before, after: kind if _is_less(before, after) else None


def when_more(kind: Weakening) -> Judge:
    return lambda before, after: kind if _is_less(after, before) else None


def when_on(before: Value | None, after: Value | None) -> Weakening | None:
    return Weakening.OPENS if after is True and before is not True else None


def when_off(before: Value | None, after: Value | None) -> Weakening | None:
    return Weakening.ENDS if before is True and after is not True else None


def when_freer(before: Value | None, after: Value | None) -> Weakening | None:
    order = [Permission.NEVER, Permission.AUTHORISED, Permission.FREE]
    if not isinstance(before, Permission) or not isinstance(after, Permission):
        return None
    return Weakening.OPENS if order.index(after) > order.index(before) else None


def when_more_may(before: Value | None, after: Value | None) -> Weakening | None:
    if not isinstance(before, tuple) or not isinstance(after, tuple) or ANYONE in before:
        return None
    return Weakening.OPENS if set(after) - set(before) else None


def when_longer_list(before: Value | None, after: Value | None) -> Weakening | None:
    """One line more: something is found, and nobody is told."""
    was, is_now = (set(each) if isinstance(each, tuple) else set() for each in (before, after))
    return Weakening.ENDS if is_now - was else None


def _is_less(before: Value | None, after: Value | None) -> bool:
    if before is None or after is None or before == after:
        return False
    return at_most(_limit(after), _limit(before))


def _limit(value: Value) -> Limit:
    assert isinstance(value, (int, Unlimited)), value
    return value
