"""What one partition is like, by named rules in a fixed order. Pure.

Each rule says what the partition's lag is worth, since not every lag is work that a replica more would do:

- no commit: where the group begins is its reset policy's to say. `earliest`: at the log's start. `latest`: at
  the end of the log; without a consumer, what came since somebody looks will be read by none but still is
  what a consumer is wanted for, so it counts until there is one.
- trimmed: the log begins behind the commit. Records are gone unread: an alert. What counts begins where the
  reset policy says.
- past the end: a commit behind the log's end is of another log, or of one that lost its end. The same rule.
- marker tail: after a transaction the last offset is a marker, which no consumer is given and none commits.
  One offset that stands still with a consumer there is that, or one record nobody can do; neither wants
  replicas.
- stalled: consumers are there, and nothing was committed for `stall_s` though there is work: replicas cannot
  help. Poisoned: the same, with members that come and go, as of a record that kills who reads it.
- partition added: before it was there it had no lag. It neither ends a time that was persistent nor makes
  one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from workers.scaler.options import Options
from workers.scaler.values import JudgedPartition, PartitionSample, PartitionVerdict, Sample
from workers.scaler.window import Held, age_s, held_for

POISONED_CHANGES = 3  # of who is a member, while a partition stands: a deployment makes one or two


def lag_of(seen: PartitionSample, sample: Sample, first: PartitionSample | None, options: Options) -> int:
    """What a partition's lag is worth in one sample; `first` is the first that was seen of it."""
    return max(0, seen.log_end - position_of(seen, sample, first, options))


def position_of(
    seen: PartitionSample, sample: Sample, first: PartitionSample | None, options: Options
) -> int:
    """The offset that a consumer would go on from."""
    if seen.committed is not None and seen.log_start <= seen.committed <= seen.log_end:
        return seen.committed
    if options.offset_reset == "earliest":
        return seen.log_start
    if sample.members or first is None:
        return seen.log_end
    return max(seen.log_start, min(seen.log_end, first.log_end))


def judge_partition(
    partition: int, samples: Sequence[Sample], options: Options, *, tails: Mapping[int, int]
) -> JudgedPartition:
    """The word on a partition that the last sample has."""
    last = samples[-1]
    seen = last.of(partition)
    assert seen is not None, "only a partition of the last sample is judged"
    if seen.unknown is not None:
        return _judged(partition, PartitionVerdict.UNKNOWN, 0, seen.unknown)
    history = _history(partition, samples)
    lag = lag_of(seen, last, history[0][1], options)
    if lag == 0 and seen.committed is not None and seen.committed >= seen.log_start == seen.log_end:
        return _judged(partition, PartitionVerdict.CAUGHT_UP, 0, "the log is empty")
    if why := _marker_tail(seen, history, options, tails):
        return _judged(partition, PartitionVerdict.MARKER_TAIL, 0, why)
    age = age_s(samples, partition, position_of(seen, last, history[0][1], options))
    if found := _reset(seen, lag, history, options):
        # Who has never committed anything may be as stuck as who has: for ever "no commit yet" would be all
        # of the log as lag, and the most replicas for it (keda#5906).
        is_stuck = found[0] is PartitionVerdict.NO_COMMIT and lag > 0
        found = (is_stuck and _stands(history, options)) or found
        return _judged(partition, found[0], lag, found[1], age)
    if lag == 0:
        return _judged(partition, PartitionVerdict.CAUGHT_UP, 0, "all is committed")
    if found := _stands(history, options):
        return _judged(partition, found[0], lag, found[1], age)
    return _behind(partition, lag, age, history, options, partitions=len(last.partitions))


def _judged(
    partition: int, verdict: PartitionVerdict, lag: int, why: str, age: float | None = None
) -> JudgedPartition:
    return JudgedPartition(partition=partition, verdict=verdict, lag_records=lag, why=why, age_s=age)


History = Sequence[tuple[Sample, PartitionSample]]


def _history(partition: int, samples: Sequence[Sample]) -> History:
    """Where it was seen, oldest first."""
    seen = ((sample, sample.of(partition)) for sample in samples)
    return [(sample, each) for sample, each in seen if each is not None and each.unknown is None]


def _marker_tail(seen: PartitionSample, history: History, options: Options, tails: Mapping[int, int]) -> str:
    if seen.committed is None or seen.log_end - seen.committed < 1:
        return ""
    if seen.tail_is_marker:
        return f"behind the commit {seen.committed} nothing is left to be read"
    if tails.get(seen.partition) == seen.log_end and seen.log_end - seen.committed == 1:
        return f"the offset {seen.committed} was left over when there were consumers"
    if seen.log_end - seen.committed != 1:
        return ""
    stood = held_for(
        [
            (
                sample.at_s,
                (each.committed, each.log_end) == (seen.committed, seen.log_end) and sample.members > 0,
            )
            for sample, each in history
        ],
        options.marker_tail_s,
        bool,
        samples_min=options.min_samples,
        gap_max_s=options.gap_max_s,
    )
    if stood.held is not Held.YES:
        return ""
    return f"one offset, {seen.committed}, stands still though there are consumers"


def _reset(
    seen: PartitionSample, lag: int, history: History, options: Options
) -> tuple[PartitionVerdict, str] | None:
    from_there = f"the group begins at its {options.offset_reset} offset"
    if seen.committed is None:
        return PartitionVerdict.NO_COMMIT, f"nothing is committed: {from_there}, {lag} records wait"
    if seen.committed < seen.log_start:
        lost = seen.log_start - seen.committed
        return PartitionVerdict.TRIMMED, (
            f"the log begins at {seen.log_start}, the commit is {seen.committed}: "
            f"{lost} offsets are gone unread"
        )
    if seen.committed > seen.log_end:
        return PartitionVerdict.TRIMMED, (
            f"the commit {seen.committed} is past the log's end {seen.log_end}: {from_there}"
        )
    commits = [each.committed for _, each in history if each.committed is not None]
    furthest = max(commits)
    if seen.committed < furthest:
        return PartitionVerdict.REWOUND, f"the commit was {furthest}, and is {seen.committed}"
    return None


def _stands(history: History, options: Options) -> tuple[PartitionVerdict, str] | None:
    """Consumers are there, there is work all the time, and nothing is committed."""
    _, seen = history[-1]
    stood = held_for(
        [
            (
                sample.at_s,
                each.committed == seen.committed
                and each.log_end > (each.log_start if each.committed is None else each.committed),
            )
            for sample, each in history
        ],
        options.stall_s,
        bool,
        samples_min=options.min_samples,
        gap_max_s=options.gap_max_s,
    )
    if stood.held is not Held.YES:
        return None
    during = [sample for sample, _ in history if sample.at_s >= stood.from_s]
    who = {sample.membership for sample in during if sample.members}
    what = "nothing" if seen.committed is None else f"nothing but {seen.committed}"
    if len(who) > POISONED_CHANGES:
        return PartitionVerdict.POISONED, (
            f"{what} was committed while members come and go ({len(who)} memberships)"
        )
    if all(sample.members for sample in during):
        return PartitionVerdict.STALLED, (
            f"{what} was committed for {stood.to_s - stood.from_s:.0f} s, with consumers there"
        )
    return None  # stopped: nobody is there to do it, which replicas do help


def _behind(
    partition: int, lag: int, age: float | None, history: History, options: Options, *, partitions: int
) -> JudgedPartition:
    share = max(1.0, options.lag_threshold / partitions)
    sight = held_for(
        [(sample.at_s, lag_of(each, sample, history[0][1], options)) for sample, each in history],
        options.sustain_s,
        lambda value: value >= share,
        samples_min=options.min_samples,
        gap_max_s=options.gap_max_s,
    )
    if sight.held is Held.YES:
        why = f"at or above its share of the threshold, {share:.0f}, for {options.sustain_s:g} s"
        return _judged(partition, PartitionVerdict.PERSISTENT, lag, why, age)
    return _judged(partition, PartitionVerdict.BEHIND, lag, f"{lag} records wait", age)
