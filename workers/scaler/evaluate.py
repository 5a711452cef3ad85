"""From a window to a word: what a group's lag is like, and how many replicas are wanted. Pure, and a fold.

`evaluate` takes what was remembered and gives what is to be: the same samples in the same order give the same
words, on whatever machine. It asks in this order, and the first that has an answer says it: is enough known;
is there anything to do at all; has the group settled; is the lag persistent, and would more replicas help;
has it been low for long enough, and would fewer do.

Invariants: nothing moves between the two thresholds. A lag that falls never scales out. What is not known
scales nothing in and sets nothing idle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from workers.scaler import replicas as counts
from workers.scaler.measure import Group, measure
from workers.scaler.options import Options
from workers.scaler.remember import attempted, judged_attempt, with_capacity, with_membership
from workers.scaler.values import Evaluation, Move, PartitionVerdict, Reason, State, Verdict
from workers.scaler.window import Held, Window


@dataclass(frozen=True, slots=True, kw_only=True)
class _Word:
    """What is decided, before the numbers are put beside it."""

    verdict: Verdict
    move: Move = Move.HOLD
    state: State
    reasons: tuple[Reason, ...]
    alerts: tuple[str, ...] = ()


def evaluate(options: Options, state: State, window: Window) -> tuple[State, Evaluation]:
    """The word on the window's last sample, and what to remember for the next."""
    last = window.last
    assert last is not None, "a word is about a sample"
    before = with_membership(state, last, options)
    group = measure(options, window, tails=before.tails, settled_s=before.membership_at_s)
    before = replace(
        before,
        tails={
            each.partition: seen.log_end
            for each in group.judged
            if each.verdict is PartitionVerdict.MARKER_TAIL and (seen := last.of(each.partition)) is not None
        },
    )
    word = _unknown(options, before, window, group) or _known(
        options, with_capacity(before, group, options), group
    )
    return word.state, _said(word, group)


def _unknown(options: Options, state: State, window: Window, group: Group) -> _Word | None:
    """Too little is known to say anything."""
    now_s = group.now_s
    unbroken = [now_s]
    for at_s, _ in reversed(group.lag[:-1]):
        if unbroken[-1] - at_s > options.gap_max_s:
            break
        unbroken.append(at_s)
    why = ""
    if not window.samples[-1].partitions:
        why = "the topic has no partitions"
    elif not group.judged:
        why = "the topic has none of the partitions that are asked for"
    elif not any(each.is_counted for each in group.judged) and group.has_unknown:
        why = "nothing is known of any partition"
    elif len(group.lag) == 0 or group.lag[-1][0] < now_s:
        why = "not all of the partitions that count were seen"
    elif len(unbroken) < options.min_samples:
        why = f"{len(unbroken)} samples without a gap, and {options.min_samples} are needed"
    elif group.has_unknown and group.persistent.held is not Held.YES:
        why = "some partitions are not known, and what is known does not want more replicas"
    if not why:
        return None
    reason = Reason(rule="unknown", text=why, from_s=unbroken[-1], to_s=now_s)
    return _Word(verdict=Verdict.UNKNOWN, state=state, reasons=(reason,))


def _known(options: Options, state: State, group: Group) -> _Word:
    state, activity = _activity(options, state, group)
    if not state.is_active:
        idle = replace(state, replicas=0.0, attempt=None)
        return _Word(verdict=Verdict.IDLE, state=idle, reasons=(activity,))
    state = _begun(options, state, group)
    state, alerts, attempt = judged_attempt(options, state, group)
    verdict, seen = _verdict(options, group)
    word = _Word(
        verdict=verdict, state=state, reasons=(activity, seen, *attempt), alerts=(*alerts, *_alerts(group))
    )
    if quiet := _quiet(options, state, group):
        unsettled = _unsettled(options, state, group)
        return replace(word, reasons=(*word.reasons, quiet), alerts=(*word.alerts, *unsettled))
    if verdict is Verdict.PERSISTENT:
        return _out(options, word, group)
    if verdict is Verdict.LOW and group.low.held is Held.YES:
        return _in(options, word, group)
    return word


def _activity(options: Options, state: State, group: Group) -> tuple[State, Reason]:
    """IsActive: between nothing at all and one replica. A partition that is stuck keeps its group active, as
    somebody has to see to it."""
    now_s, waiting = group.waiting[-1]
    wanted = options.activation_lag
    arrived = options.activation_sustain_s == 0 or (
        all(value > wanted for at_s, value in group.waiting if at_s >= now_s - options.activation_sustain_s)
        and now_s - group.waiting[0][0] >= options.activation_sustain_s
    )
    was = state.is_active
    if was is None:
        was = group.members > 0
    text = f"{waiting:.0f} records wait, {group.ends_moved} came in {options.release_s:g} s"
    if was:
        nothing = group.idle.held is Held.YES and group.ends_moved <= wanted
        is_active = not nothing or group.has_stuck or group.has_unknown
    else:
        is_active = waiting > wanted and arrived
    reason = Reason(rule="active" if is_active else "idle", text=text, from_s=group.idle.from_s, to_s=now_s)
    return replace(state, is_active=is_active), reason


def _begun(options: Options, state: State, group: Group) -> State:
    """What was wanted last, within what is allowed; at the beginning, as many as there are."""
    least, most = options.min_replicas, options.cap(len(group.judged))
    found = state.replicas
    if found is None:
        found = float(-(-group.members // options.consumers_per_replica))
    return replace(state, replicas=float(min(max(found, least), max(most, least))))


def _verdict(options: Options, group: Group) -> tuple[Verdict, Reason]:
    sight, lag = group.persistent, group.lag_now
    aged = (
        options.age_threshold_s > 0
        and group.age_s is not None
        # What has waited so long now had waited for the threshold when the time began.
        and group.age_s >= options.age_threshold_s + options.sustain_s
    )
    if sight.held is Held.YES or aged:
        text = f"at or above {options.lag_threshold} for {options.sustain_s:g} s"
        if sight.held is not Held.YES:
            text = f"the oldest record has waited for {group.age_s:.0f} s"
        verdict = Verdict.RECOVERING if group.is_recovering else Verdict.PERSISTENT
        text += ", and falling" if group.is_recovering else ", and not falling"
    elif lag >= options.lag_threshold:
        verdict, text = Verdict.TRANSIENT, f"at or above {options.lag_threshold}, but not for all of the time"
        if sight.held is not Held.NO:
            text = f"at or above {options.lag_threshold}, but {sight.held.value}"
    elif lag <= options.lag_threshold_exit:
        verdict, sight = Verdict.LOW, group.low
        text = f"at or below {options.lag_threshold_exit}"
    else:
        verdict, text = Verdict.BETWEEN, f"between {options.lag_threshold_exit} and {options.lag_threshold}"
    reason = Reason(
        rule=verdict.name.lower(),
        text=f"lag {lag:.0f}: {text} ({sight.count} samples)",
        from_s=sight.from_s,
        to_s=group.now_s,
    )
    return verdict, reason


def _quiet(options: Options, state: State, group: Group) -> Reason | None:
    changed_s = state.membership_at_s
    if changed_s is None or group.now_s - changed_s >= options.rebalance_quiet_s:
        return None
    return Reason(
        rule="rebalance quiet",
        text=f"the group changed {group.now_s - changed_s:.0f} s ago",
        from_s=changed_s,
        to_s=group.now_s,
    )


def _unsettled(options: Options, state: State, group: Group) -> tuple[str, ...]:
    since_s = state.settling_since_s
    if since_s is None or group.now_s - since_s < max(options.sustain_s, 4 * options.rebalance_quiet_s):
        return ()
    return (f"unsettled: the group has not come to rest for {group.now_s - since_s:.0f} s",)


def _out(options: Options, word: _Word, group: Group) -> _Word:
    """More replicas, unless something says that they would not help, or are on their way."""
    state, now_s = word.state, group.now_s
    assert state.replicas is not None
    held: Reason | None = None

    def hold(rule: str, text: str, from_s: float) -> Reason:
        return Reason(rule=rule, text=text, from_s=from_s, to_s=now_s)

    if state.frozen_until_s is not None and now_s < state.frozen_until_s:
        text = f"scaling out did not help; for another {state.frozen_until_s - now_s:.0f} s"
        held = hold("frozen", text, now_s)
    elif state.attempt is not None:
        text = "what the last scaling out does is not known yet"
        if state.attempt.came_at_s is None:
            text = f"{group.members} members: those of the last scaling out have not come"
        held = hold("attempt", text, state.attempt.at_s)
    elif state.out_at_s is not None and now_s - state.out_at_s < options.scale_up_interval_s:
        held = hold(
            "scale-up interval", f"last scaled out {now_s - state.out_at_s:.0f} s ago", state.out_at_s
        )
    if held is not None:
        return replace(word, reasons=(*word.reasons, held))
    wanted, text = _wanted(options, state, group)
    most = float(options.cap(len(group.judged)))
    to = min(
        most,
        counts.step_up(
            state.replicas, wanted, partitions=len(group.judged), how=options.balanced, step=options.step_up
        ),
    )
    if to <= state.replicas:
        held = hold("bounds", f"{state.replicas:g} replicas are the most", now_s)
        return replace(word, reasons=(*word.reasons, held))
    reason = Reason(rule="scale out", text=f"{text}: {state.replicas:g} to {to:g}", from_s=now_s, to_s=now_s)
    after = attempted(state, group, to)
    return replace(word, move=Move.OUT, state=after, reasons=(*word.reasons, reason))


def _wanted(options: Options, state: State, group: Group) -> tuple[float, str]:
    assert state.replicas is not None
    at_least = state.replicas + 1
    if not state.capacity_per_s or group.produced_per_s is None:
        return at_least, "what a replica can do is not known"
    per_s = group.produced_per_s + group.lag_now / options.drain_s
    need = per_s / state.capacity_per_s
    text = (
        f"{group.produced_per_s:.1f}/s come and {group.lag_now:.0f} wait, a replica does "
        f"{state.capacity_per_s:.1f}/s: {need:.2f}"
    )
    return max(at_least, need), text


def _in(options: Options, word: _Word, group: Group) -> _Word:
    """Fewer replicas, if fewer can do what comes."""
    state, now_s = word.state, group.now_s
    assert state.replicas is not None
    moved_s = max((at_s for at_s in (state.out_at_s, state.in_at_s) if at_s is not None), default=None)
    pause_s = (
        options.cool_down_s if moved_s == state.out_at_s else max(options.release_s, options.cool_down_s)
    )
    if moved_s is not None and now_s - moved_s < pause_s:
        held = Reason(
            rule="cool-down", text=f"last scaled {now_s - moved_s:.0f} s ago", from_s=moved_s, to_s=now_s
        )
        return replace(word, reasons=(*word.reasons, held))
    need, text = float(options.min_replicas), "what a replica can do is not known"
    if state.capacity_per_s and group.produced_per_s is not None:
        need = max(need, group.produced_per_s / (state.capacity_per_s * options.headroom))
        text = (
            f"{group.produced_per_s:.1f}/s come, a replica does {state.capacity_per_s:.1f}/s: "
            f"{need:.2f} are needed"
        )
    to = counts.step_down(
        state.replicas, need, partitions=len(group.judged), how=options.balanced, step=options.step_down
    )
    to = max(to, float(options.min_replicas))
    if to >= state.replicas:
        held = Reason(rule="enough to do", text=text, from_s=group.low.from_s, to_s=now_s)
        return replace(word, reasons=(*word.reasons, held))
    reason = Reason(
        rule="scale in",
        text=f"low for {options.release_s:g} s, {text}: {state.replicas:g} to {to:g}",
        from_s=group.low.from_s,
        to_s=now_s,
    )
    after = replace(state, replicas=to, in_at_s=now_s, attempt=None)
    return replace(word, move=Move.IN, state=after, reasons=(*word.reasons, reason))


def _alerts(group: Group) -> tuple[str, ...]:
    return tuple(
        f"partition {each.partition} is {each.verdict.value}: {each.why}"
        for each in group.judged
        if each.is_alerted
    )


def _said(word: _Word, group: Group) -> Evaluation:
    made, done = group.produced_per_s, group.consumed_per_s
    drains = made is not None and done is not None and done > made and group.lag_now > 0
    return Evaluation(
        at_s=group.now_s,
        verdict=word.verdict,
        move=word.move,
        is_active=bool(word.state.is_active),
        replicas=word.state.replicas or 0.0,
        lag_records=round(group.lag_now),
        age_s=group.age_s,
        produced_per_s=made,
        consumed_per_s=done,
        drain_s=group.lag_now / (done - made) if drains and made is not None and done is not None else None,
        reasons=word.reasons,
        partitions=group.judged,
        alerts=word.alerts if word.verdict is not Verdict.UNKNOWN else _alerts(group),
    )
