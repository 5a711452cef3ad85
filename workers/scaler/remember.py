"""What is remembered of a group from one word to the next: its members, what a replica can do, what was
tried.

Pure. A replica's capacity is measured only while there is enough to do for the same members; what is consumed
of a low lag says how much came, and is at most a lower bound.
"""

from __future__ import annotations

from dataclasses import replace

from workers.scaler.measure import Group
from workers.scaler.options import Options
from workers.scaler.values import Attempt, Reason, Sample, State
from workers.scaler.window import Held

CAPACITY_S = 3_600.0  # an older one is forgotten, so that one slow hour does not keep replicas for ever
CAPACITY_WEIGHT = 0.3  # of a new measurement


def with_membership(state: State, sample: Sample, options: Options) -> State:
    """When the group last changed. Its first sample is no change."""
    changed = state.membership not in (None, sample.membership) or not sample.is_settled
    at_s = sample.at_s if changed else state.membership_at_s
    quiet = at_s is not None and sample.at_s - at_s < options.rebalance_quiet_s
    since_s = (
        (state.settling_since_s if state.settling_since_s is not None else sample.at_s) if quiet else None
    )
    return replace(state, membership=sample.membership, membership_at_s=at_s, settling_since_s=since_s)


def with_capacity(state: State, group: Group, options: Options) -> State:
    """What one replica consumes when there is enough to do."""
    known = state.capacity_per_s
    if state.capacity_at_s is not None and group.now_s - state.capacity_at_s >= CAPACITY_S:
        known = None
    at_s = state.capacity_at_s if known is not None else None
    working = group.members / options.consumers_per_replica
    measured = group.settled_per_s / working if working and group.settled_per_s else None
    if measured and group.is_busy:
        known = measured if known is None else known + CAPACITY_WEIGHT * (measured - known)
        at_s = group.now_s
    elif measured and known is not None:
        known = max(known, measured)
    return replace(state, capacity_per_s=known, capacity_at_s=at_s)


def attempted(state: State, group: Group, to: float) -> State:
    """After a scaling out: how it was before, so that its effect can be told."""
    # A group without members that works all the same assigns its partitions itself: nobody will be seen to
    # come.
    is_seen = group.members > 0 or not group.consumed_per_s
    attempt = Attempt(
        at_s=group.now_s,
        members=group.members,
        consumed_per_s=group.consumed_per_s or 0.0,
        came_at_s=None if is_seen else group.now_s,
    )
    return replace(state, replicas=to, out_at_s=group.now_s, attempt=attempt)


def judged_attempt(
    options: Options, state: State, group: Group
) -> tuple[State, tuple[str, ...], tuple[Reason, ...]]:
    """What became of the last scaling out; where it did not help, the next is put off."""
    tried, now_s = state.attempt, group.now_s
    if tried is None:
        if state.frozen_until_s is None or now_s >= state.frozen_until_s:
            return replace(state, frozen_until_s=None), (), ()
        return state, (_ineffective(options),), ()
    if tried.came_at_s is None:
        if group.members > tried.members:
            return replace(state, attempt=replace(tried, came_at_s=now_s)), (), ()
        if now_s - tried.at_s >= options.freeze_s:
            return replace(state, attempt=None), (), ()
        late = now_s - tried.at_s >= options.help_s
        said = f"not come: {group.members} members for {now_s - tried.at_s:.0f} s after scaling out"
        return state, ((said,) if late else ()), ()
    still = group.persistent.held is Held.YES and not group.is_recovering
    if now_s - tried.came_at_s < options.rebalance_quiet_s + options.help_s:
        return state, (), ()
    consumed = group.consumed_per_s or 0.0
    if not still or consumed >= tried.consumed_per_s * (1 + options.help_share):
        return replace(state, attempt=None), (), ()
    reason = Reason(
        rule="scaling out did not help",
        text=f"{consumed:.1f}/s are consumed with {group.members} members, "
        f"{tried.consumed_per_s:.1f}/s were with {tried.members}",
        from_s=tried.at_s,
        to_s=now_s,
    )
    frozen = replace(state, attempt=None, frozen_until_s=now_s + options.freeze_s)
    return frozen, (_ineffective(options),), (reason,)


def _ineffective(options: Options) -> str:
    return f"ineffective: scaling out did not help, none again within {options.freeze_s:g} s"
