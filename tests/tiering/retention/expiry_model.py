"""A log whose whole truth is known, and a judge who checks each of expiry's acts against it.

The truth is what the topic says when it is read to its end, what people meant by records that our table does
not follow (a hold by a newer agent, a hold that lost a race), and the bytes of every offset. The judge knows
nothing of how expiry decides; it looks at effects:

    the start moves         over offsets of which each has expired, by the age or the number of their own
                            bytes, or lies in a recorded gap; below the frontier; into no hold; under the
                            blast limit
    a removal is announced  of a copy that ends at or below a start that has stood for a grace; that nobody
                            holds; the first of those that are left; under the blast limit; by who leads,
                            where people want it, on a table that is read to its end
    a marker is put         on a copy that is announced and not restored, and that nobody has come to hold
    a topic's copies go     after the topic's grace, when it is gone for certain
    an undisturbed run      does all that it planned, up to a copy that has not expired by its own numbers
                            under the policy in force now: the audit would condemn that (decision 24)

What comes between a decision's last look and its effect cannot be seen; the judge goes by that look.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.tiering.retention.expiry_truth import FORK, LOG_END, Range, Truth, bytes_of, check
from tests.tiering.retention.world import HOUR_MS, Killed, World
from tiering.errors import StatedError
from tiering.retention.expire import Run, dry_run, expire, forget
from tiering.retention.expiry import Advance
from tiering.retention.facts import facts_of
from tiering.retention.reasons import Keep, Reason
from tiering.retention.remote import Presence, Remove, Situation
from tiering.retention.remote_policy import BlastLimit, RemotePolicy
from tiering.segments.codec import encode_log
from tiering.segments.frontier import Frontier, frontier
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import Hold, LogId, LogRecord, SegmentRecord, SegmentState
from tiering.segments.rows import Standing
from tiering.segments.table import PartitionTable

STARTED, FINISHED = SegmentState.COPY_STARTED, SegmentState.COPY_FINISHED
DELETING, DELETED = SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED

SOME_POLICY = RemotePolicy(
    deletes=True,
    total_ms=10 * HOUR_MS,
    total_bytes=None,
    grace_ms=2 * HOUR_MS,
    topic_grace_ms=4 * HOUR_MS,
    window_ms=20 * HOUR_MS,
    blast_per_hour=BlastLimit(2, 2000),
)
UNREADABLE = b'{"kind":"%s","min_reader":9,"state":"COPY_FINISHED","version":9}'


@dataclass
class Model(World):
    """The world, judged."""

    policy: RemotePolicy = SOME_POLICY
    records: dict[str, SegmentRecord] = field(default_factory=dict)  # every copy ever begun
    newer_holds: list[Range] = field(default_factory=list)
    lost_holds: list[Range] = field(default_factory=list)  # until their holder tries again
    pinned: set[str] = field(default_factory=set)  # copies of which a newer agent said something
    starts: list[tuple[int, int]] = field(default_factory=list)  # (when, log start), as followed
    announced: list[tuple[int, int]] = field(default_factory=list)  # (when, bytes)
    looked: list[Truth] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.claim(occurred_at_ms=self.now_ms)
        self.starts.append((self.now_ms, 0))

    # The ports, each effect judged before or as it happens.

    def look(self, log: LogId) -> Situation:
        now = super().look(log)
        self.looked.append(self._truth())
        return replace(now, facts=self._facts_behind()) if self.lag else now

    def publish(self, record: SegmentRecord | LogRecord) -> int:
        if isinstance(record, SegmentRecord) and record.state is DELETING:
            self._judge_removal(record, self.looked[-1])
        self.lag = 0  # whoever reads back what it wrote has read all before it
        before = self.view.record
        offset = super().publish(record)
        if isinstance(record, LogRecord):
            assert before is not None
            self.starts.append((self.now_ms, record.log_start))
            self._judge_rewriting(before, record)
        return offset

    def mark_deleted(self, key: str) -> str | None:
        truth = self.looked[-1]
        [record] = [each for each in self.records.values() if key.startswith(each.key_stem)]
        check(truth.states.get(record.segment_id) is DELETING, "a marker on what is not announced")
        self._judge_leave(truth, record)
        return super().mark_deleted(key)

    def _judge_leave(self, truth: Truth, record: SegmentRecord | None = None) -> None:
        check(truth.policy.deletes, "nobody wants anything removed")
        check(truth.is_led_by_us or truth.topic is Presence.GONE, "another leads")
        check(truth.topic is not Presence.UNKNOWN, "the topic is not known to be there, or gone")
        until_ms = truth.keep_until_ms
        check(until_ms is None or self.now_ms >= until_ms, "a restore asked for time")
        if record is not None:
            check(not truth.is_held(record.base_offset, record.end_offset), "a removal under a hold")
            check(record.segment_id not in truth.pinned, "a removal of what a newer agent spoke of")

    def _judge_removal(self, record: SegmentRecord, truth: Truth) -> None:
        self._judge_leave(truth, record)
        if truth.topic is Presence.GONE:
            since_ms = truth.topic_deleted_at_ms
            passed = since_ms is not None and self.now_ms - since_ms >= truth.policy.topic_grace_ms
            check(passed, "before the topic's grace")
            left = [each for each, state in truth.states.items() if state is not DELETED]
        else:
            check(record.end_offset <= truth.settled_start, "above a start that has stood for a grace")
            left = [
                each
                for each, state in truth.states.items()
                if state in (FINISHED, DELETING) and self.records[each].end_offset <= truth.settled_start
            ]
        order = min(_order(self.records[each]) for each in left)
        check(order == _order(record), "not the first of what is left")
        recent = [size for when, size in self.announced if when > self.now_ms - HOUR_MS]
        self.announced.append((self.now_ms, record.size_bytes))
        within = truth.policy.blast_per_hour.allows(len(recent) + 1, sum(recent) + record.size_bytes)
        check(within, "more than the blast limit")

    def _judge_rewriting(self, before: LogRecord, after: LogRecord) -> None:
        """It is followed: nobody wrote in between, so that it is judged by what the topic says now.

        What people want, and whether the topic is there, is told elsewhere: as it was at the last look.
        """
        check(after.holds == before.holds, "a hold that is undone")
        check(not self.lost_holds, "a record that was refused is made to be forgotten")
        old, new = before.log_start, after.log_start
        if new == old:
            return
        looked = self.looked[-1]
        truth = replace(self._truth(), policy=looked.policy, topic=looked.topic)
        self._judge_leave(truth)
        check(new > old, "a start that goes back")
        check(not truth.is_held(0, new), "a start moved past a hold")
        found = frontier(self.view)
        assert isinstance(found, Frontier)
        check(found.offset >= new and found.start == new, "a start beyond the frontier")
        live = [self.records[each] for each, state in truth.states.items() if state in (FINISHED, DELETING)]
        sizes = [each.size_bytes for each in live if old < each.end_offset <= new]
        check(
            truth.policy.blast_per_advance.allows(len(sizes), sum(sizes)), "more freed than the blast limit"
        )
        for offset in range(old, new):
            check(self._has_expired(offset, after, truth.policy), f"offset {offset} has not expired")
        beyond = any(c.base_offset <= new < end for c, end in self.of_lineage())
        check(beyond or found.offset == new, "a start that nobody can read")

    def _has_expired(self, offset: int, record: LogRecord, policy: RemotePolicy) -> bool:
        holding = [(copy, end) for copy, end in self.of_lineage() if copy.base_offset <= offset < end]
        if not holding:
            return any(each.start_offset <= offset < each.end_offset for each in record.gaps)
        return any(self._lets_go(copy, end, policy) for copy, end in holding)

    def _lets_go(self, copy: SegmentRecord, end: int, policy: RemotePolicy) -> bool:
        """Whether a copy has expired by its own numbers. It ends at `end` to be the log's."""
        limit_ms, limit_bytes = policy.total_ms, policy.total_bytes
        newest_ms = copy.max_timestamp_ms
        by_time = limit_ms is not None and newest_ms >= 0 and self.now_ms - newest_ms > limit_ms
        return by_time or (limit_bytes is not None and self._bytes_from(end) >= limit_bytes)

    def of_lineage(self) -> list[tuple[SegmentRecord, int]]:
        """Finished copies, each with where it ends to be the log's."""
        states = self._truth().states
        finished = [each for key, each in self.records.items() if states.get(key) is FINISHED]
        return [(each, _end_on_lineage(each)) for each in finished if each.leader_epochs[0].epoch == 0]

    def _bytes_from(self, offset: int) -> int:
        held = {o for copy, end in self.of_lineage() for o in range(copy.base_offset, end)}
        held |= {o for extent in self.local for o in range(extent.base_offset, extent.end_offset)}
        return sum(bytes_of(o, o + 1) for o in held if o >= offset)

    # What is so.

    def _truth(self) -> Truth:
        view, record = self.view, self.view.record
        holds = [(each.start_offset, each.end_offset) for each in (record.holds if record else ())]
        followed = [each for each in view.segments() if each.standing is Standing.FOLLOWED]
        return Truth(
            holds=(*holds, *self.newer_holds, *self.lost_holds),
            keep_until_ms=record.keep_until_ms if record else None,
            is_led_by_us=view.claims[-1].epoch == self.leader_epoch,
            states={each.segment_id: each.state for each in followed},
            settled_start=self._settled_start(),
            topic_deleted_at_ms=record.topic_deleted_at_ms if record else None,
            pinned=frozenset(self.pinned),
            policy=self.policy,
            topic=self.topic,
        )

    def _settled_start(self) -> int:
        since_ms = self.now_ms - self.policy.grace_ms
        before = [start for when, start in self.starts if when <= since_ms][-1:]
        after = [start for when, start in self.starts if when > since_ms]
        return min([*before, *after]) if before else 0

    def _facts_behind(self) -> Any:
        """What a table says that has not read the last records."""
        read = max(0, len(self.topic_records) - self.lag)
        behind = PartitionTable(self.table.topic, 0, complete_from=0)
        for offset, (key, value) in enumerate(self.topic_records[:read]):
            behind.apply(offset, key, value)
        end_offset = len(self.topic_records)
        return facts_of(self.log, behind.view(self.log), applied_to=read, end_offset=end_offset)

    # What others do.

    def add_copy(self, base: int, length: int, *, age_h: int | None, kind: str) -> None:
        """Of the log's lineage, of another, of both, or begun and not finished; of who leads now."""
        if self.view.record is None:
            return
        end = min(LOG_END, base + length)
        epochs = {"other": ((1, base),), "forked": ((0, base), (1, FORK))}.get(kind, ((0, base),))
        if kind == "forked" and not base < FORK < end:
            epochs = ((0, base),)
        made = self.copy(
            base,
            end,
            max_timestamp_ms=-1 if age_h is None else self.now_ms - age_h * HOUR_MS,
            state=STARTED if kind == "unfinished" else FINISHED,
            size_bytes=bytes_of(base, end),
            epochs=epochs,
            leader_epoch=self.view.claims[-1].epoch,
        )
        self.records[made.segment_id] = made

    def rewrite(self, **fields: Any) -> None:
        """A record that is followed; whoever lost a race tries again at once."""
        record = self.view.record
        if record is None or self.view.own_key_unreadable:
            return
        holds = fields.pop("holds", record.holds)
        again = tuple(self._hold(start, end) for start, end in self.lost_holds)
        self.change(occurred_at_ms=self.now_ms, holds=(*holds, *again), **fields)
        self.lost_holds.clear()
        self.starts.append((self.now_ms, self.log_start))

    def place_hold(self, start: int, end: int | None) -> None:
        if self.view.record is not None:
            self.rewrite(holds=(*self.view.record.holds, self._hold(start, end)))

    def release_holds(self) -> None:
        self.lost_holds.clear()
        self.rewrite(holds=())

    def place_newer_hold(self, start: int, end: int | None) -> None:
        """By an agent that speaks a newer version: our table sees that it cannot read it."""
        self.newer_holds.append((start, end))
        self.append_raw(log_key(self.log), UNREADABLE % b"log")

    def lose_hold(self, start: int, end: int | None) -> None:
        """By a holder who had not seen the last record of the log."""
        view = self.view
        stale = view.claims[-1].offset
        if view.record is None or view.own_key_unreadable or stale == view.record_offset:
            return
        holds = (*view.record.holds, self._hold(start, end))
        lost = replace(view.record, holds=holds, claim_offset=stale, based_on=stale, event_id="lost")
        assert self.append_raw(log_key(self.log), encode_log(lost))
        self.lost_holds.append((start, end))

    def _hold(self, start: int, end: int | None) -> Hold:
        return Hold(
            hold_id=f"hold-{next(self.numbers)}",
            start_offset=start,
            end_offset=end,
            reason="a finding",
            placed_by="a test",
            placed_at_ms=self.now_ms,
        )

    def pin(self, number: int) -> None:
        """A newer agent says something of a copy that our table cannot read."""
        if self.records:
            segment_id = sorted(self.records)[number % len(self.records)]
            self.pinned.add(segment_id)
            key = segment_key(self.log, self.records[segment_id].segment_id)
            self.append_raw(key, UNREADABLE % b"segment")

    def put_gap(self, start: int, length: int) -> None:
        """The one gap that is on record."""
        self.rewrite(gaps=())
        if self.view.record is not None and not self.view.own_key_unreadable:
            self.gaps((start, min(LOG_END, start + length)))

    def change_leader(self, *, to_us: bool) -> None:
        view = self.view
        if view.record is None or view.own_key_unreadable:
            return
        self.rewrite()
        epoch = max(view.claims[-1].epoch, self.leader_epoch) + 1
        kept = {
            "keep_until_ms": view.record.keep_until_ms,
            "topic_deleted_at_ms": view.record.topic_deleted_at_ms,
        }
        self.claim(epoch, occurred_at_ms=self.now_ms, **kept)
        self.starts.append((self.now_ms, self.log_start))
        if to_us:
            self.leader_epoch = epoch

    def put_back(self, number: int, *, keep_h: int) -> None:
        """Some removed or half removed copy is restored, and the start with it."""
        view = self.view
        gone = [s for s in view.segments() if s.state in (DELETING, DELETED)]
        if not gone or view.record is None or view.unreadable():
            return
        before = self.table.segment(self.log, gone[number % len(gone)].segment_id)
        assert before is not None
        if before.objects.log is None:
            return
        self.restore(replace(before, leader_epoch=max(view.claims[-1].epoch, before.leader_epoch)))
        start = min(self.log_start, before.base_offset)
        self.rewrite(log_start=start, keep_until_ms=self.now_ms + keep_h * HOUR_MS)

    # What we do.

    def run(self, *, lag: int = 0, disturbance: Callable[[], None] | None = None, moment: int = 0) -> None:
        """A run; if nothing disturbs it, it does what a dry run says."""
        undisturbed = lag == 0 and disturbance is None
        planned = dry_run(self.log, self.ports) if undisturbed else None
        self.lag, self.moment = lag, 0
        self.at = {} if disturbance is None else {moment: disturbance}
        try:
            done = expire(self.log, self.ports)
        except Killed:
            return
        finally:
            self.lag, self.at = 0, {}
        if undisturbed:
            self._judge_run(planned, done)

    def _judge_run(self, planned: Any, done: Run) -> None:
        check(done.plan == planned, "a dry run that says something else")
        ids = tuple(copy.segment_id for copy in done.plan.copies) if isinstance(done.plan, Remove) else ()
        check(done.removed == ids[: len(done.removed)], "a run that does what it did not plan")
        if done.stopped is not None:
            check(len(done.removed) < len(ids), f"an undisturbed run that stops: {done.stopped}")
            self._judge_refusal(self.records[ids[len(done.removed)]], done.stopped)
        elif isinstance(done.plan, Remove):
            check(done.removed == ids, "a run that does not do what it planned")
        if isinstance(done.plan, Advance):
            check(self.log_start == done.plan.new_start, "a start that was not moved")

    def _judge_refusal(self, refused: SegmentRecord, why: StatedError | Keep) -> None:
        """A start that moved once is no licence for what the policy in force now would keep."""
        is_gates = isinstance(why, Keep) and why.reason is Reason.AUDIT_WOULD_CONDEMN
        check(is_gates and self.topic is Presence.THERE, f"an undisturbed run that stops: {why}")
        expired = self._lets_go(refused, refused.end_offset, self.policy)
        check(not expired, f"a copy that has expired, and is refused: {why}")

    def run_to_the_end(self) -> None:
        """Until nothing is left to do; then one more changes nothing."""
        for _ in range(3 * len(self.records) + 3):
            before = len(self.topic_records)
            self.run()
            if len(self.topic_records) == before:
                break
        before, marked = len(self.topic_records), self.marked()
        self.run()
        check((len(self.topic_records), self.marked()) == (before, marked), "a run that changes something")

    def forget_removed(self) -> None:
        """What is forgotten was removed, and nobody holds it."""
        truth = self._truth()
        due = forget(self.log, self.ports)
        for segment_id in () if isinstance(due, Keep) else due:
            record = self.records[segment_id]
            check(truth.states[segment_id] is DELETED, "forgotten without having been removed")
            check(not truth.is_held(record.base_offset, record.end_offset), "forgotten under a hold")


def _order(record: SegmentRecord) -> tuple[int, int, str]:
    return record.base_offset, record.end_offset, record.segment_id


def _end_on_lineage(record: SegmentRecord) -> int:
    return record.end_offset if len(record.leader_epochs) == 1 else FORK
