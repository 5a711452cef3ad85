"""Numbers of replicas that share the partitions evenly, and the steps between them. Pure.

A group's throughput is that of its busiest consumer: of 12 partitions, 7 to 11 consumers do no more than 6.
"""

from __future__ import annotations

from math import ceil


def balanced_counts(partitions: int, how: str) -> tuple[int, ...]:
    """From 1 up. `divisors`: all have the same number of partitions. `useful`: one less would leave the
    busiest with more. `none`: every number."""
    counts = range(1, partitions + 1)
    if how == "divisors":
        return tuple(n for n in counts if partitions % n == 0)
    if how == "useful":
        return tuple(n for n in counts if n == 1 or ceil(partitions / n) < ceil(partitions / (n - 1)))
    assert how == "none", how
    return tuple(counts)


def step_up(now: float, wanted: float, *, partitions: int, how: str, step: int) -> float:
    """The number to go to from `now` towards `wanted`, which is more: at most `step` on, but at least to the
    next balanced one, or there would be no way on.

    Where no balanced number is within the step, as for a prime number of partitions, the useful ones are
    taken.
    """
    if how == "none":
        return min(max(wanted, now), now + step)
    counts = [n for n in balanced_counts(partitions, how) if n > now]
    if not counts or counts[0] > now + step:
        counts = [n for n in balanced_counts(partitions, "useful") if n > now] or counts
    if not counts:
        return now
    reachable = [n for n in counts if n <= now + step] or counts[:1]
    enough = [n for n in reachable if n >= wanted]
    return float(enough[0] if enough else reachable[-1])


def step_down(now: float, wanted: float, *, partitions: int, how: str, step: int) -> float:
    """The number to go to from `now` towards `wanted`, which is less: balanced, never below `wanted`, at most
    `step` on or the next balanced one."""
    if how == "none":
        return max(wanted, now - step)
    counts = [n for n in balanced_counts(partitions, how) if n < now]
    if not counts or counts[-1] < now - step:
        counts = [n for n in balanced_counts(partitions, "useful") if n < now] or counts
    reachable = [n for n in counts if n >= now - step] or counts[-1:]
    enough = [n for n in reachable if n >= wanted]
    return float(enough[0]) if enough else now
