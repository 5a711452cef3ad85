"""Waiting for a condition, with a deadline: the only way anything here waits.

A condition is a function without arguments; it is asked again and again, at most `POLLS_PER_S` times a
second, until it is true or the deadline has passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from seawall.local.errors import ConditionNotMet

POLLS_PER_S = 50


def becomes_true(condition: Callable[[], bool], *, deadline_s: float) -> bool:
    """Whether `condition` became true before the deadline; it is asked at least once."""
    last_moment = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() >= last_moment:
            return False
        time.sleep(1 / POLLS_PER_S)
    return True


def wait_until(condition: Callable[[], bool], *, name: str, wanted: str, deadline_s: float) -> None:
    """Return when `condition` is true, else raise ConditionNotMet saying what was wanted of whom."""
    if not becomes_true(condition, deadline_s=deadline_s):
        raise ConditionNotMet(name=name, wanted=wanted, deadline_s=deadline_s)
