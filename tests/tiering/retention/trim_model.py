"""A log whose whole truth is known, on a disk of which the head is trimmed, and a judge of every request.

The topic, its table, holds, claims and copies are those of the expiry's model. Added are the leader's disk,
what the cluster says, what the other agents say, and how a look may be wrong: behind, asked for too early, of
an empty table, on old answers. The judge knows nothing of how a trim decides; when DeleteRecords comes in, it
holds the request against what is so:

    people      want it trimmed; hold nothing of the log, by whatever record; asked for no time
    the topic   is not in Kafka's own tier, not compacted and never was; is not recorded as deleted
    we          lead, at the epoch of the highest claim there is; said so before the end was asked for
    the agents  all have the same of the log
    each offset is in a finished copy of the lineage that the store has; is committed; is below the frontier;
                has expired by its own time, or by the bytes that stay on disk behind it
    epochs      that the broker forgets with it are in the log's record
    evidence    the certificate came first, and says this request
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rules.events import TrimCertified, TrimOutcome
from tests.tiering.retention.expiry_model import Model
from tests.tiering.retention.expiry_truth import LOG_END, bytes_of, check
from tests.tiering.retention.trim_world import BROKER, LOG, OTHERS, TrimWorld, settings_with
from tests.tiering.retention.world import HOUR_MS
from tiering.cluster.gate import Eligible, NotLeader, NotYet, Verdict, Wait
from tiering.cluster.interface import Cause, TopicPartition, TopicSettings, Unknown
from tiering.log.checkpoints import EpochStart
from tiering.retention.digests import Said
from tiering.retention.facts import facts_of
from tiering.retention.local import LocalSegment, TrimFacts
from tiering.retention.local_policy import LocalPolicy
from tiering.retention.local_trim import Answered
from tiering.segments.frontier import Frontier, frontier
from tiering.segments.records import SegmentRecord, SegmentState
from tiering.segments.table import PartitionTable
from tiering.store.errors import Missing
from tiering.store.interface import Stored

__all__ = ["LOG_END", "TrimModel"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Eyes:
    """How a look may be wrong. `behind`: so many records of the topic are not read yet."""

    behind: int = 0
    end_is_early: bool = False  # it was asked for before our claim was in the topic
    is_empty: bool = False  # a topic of the name that holds nothing
    answers_are_old: bool = False
    digest_is_early: bool = False  # it was computed before the replay's end


@dataclass
class TrimModel(TrimWorld):
    """The world, judged."""

    tier: Model = field(default_factory=Model)
    policy: LocalPolicy = field(
        default_factory=lambda: LocalPolicy(trims=True, local_ms=10 * HOUR_MS, local_bytes=None)
    )
    cuts: tuple[int, ...] = (0, 20, 30, 50, 70)
    led: str = "ours"  # theirs, electing, unknown
    remote_is_on: bool = False
    is_compacted: bool = False
    settings_are_unknown: bool = False
    agents: dict[int, str] = field(default_factory=lambda: dict.fromkeys(OTHERS, "agrees"))
    unsaved: EpochStart | None = None
    eyes: Eyes = Eyes()
    disturbance: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.high_watermark = LOG_END
        self.cut(self.cuts)

    def cut(self, cuts: tuple[int, ...]) -> None:
        """The leader's disk holds all from its start on; the last segment is active."""
        self.cuts = cuts
        ends = (*cuts[1:], LOG_END)
        closed = zip(cuts[:-1], ends[:-1], strict=True)
        self.segments = [
            LocalSegment(base, end, bytes_of(base, end)) for base, end in closed if end > self.disk_start
        ]
        self.active_bytes = bytes_of(cuts[-1], LOG_END)

    # What a look gives.

    def facts(self) -> TrimFacts:
        seen, eyes = self._settings_now(), self.eyes
        table = self._table()
        digest = table.digest(LOG)
        if digest is not None and eyes.digest_is_early:
            digest = replace(digest, complete_from=digest.offset + 1)
        whole = len(self.tier.topic_records)
        end = self.tier.view.claims[-1].offset if eyes.end_is_early else 0 if eyes.is_empty else whole
        self.now_ms = self.tier.now_ms
        before = super().facts()
        return replace(
            before,
            tier=facts_of(LOG, table.view(LOG), applied_to=table.position, end_offset=end),
            digest=digest,
            said={} if digest is None else self._said(digest.offset, digest.hex()),
            lead=self._lead(),
            settings=seen,
            asked_at_ms=self.now_ms - (70_000 if eyes.answers_are_old else 10),
            epochs=(EpochStart(0, 0), *([self.unsaved] if self.unsaved else [])),
        )

    def _settings_now(self) -> TopicSettings | Unknown:
        if self.settings_are_unknown:
            return Unknown(cause=Cause.NO_ANSWER, reason="silence")
        if self.eyes.answers_are_old:
            return settings_with()
        return settings_with(
            remote_storage_enable="true" if self.remote_is_on else "false",
            cleanup_policy="compact" if self.is_compacted else "delete",
        )

    def _table(self) -> PartitionTable:
        if not self.eyes.behind and not self.eyes.is_empty:
            return self.tier.table
        read = max(0, len(self.tier.topic_records) - self.eyes.behind)
        table = PartitionTable(self.tier.table.topic, 0, complete_from=0)
        for offset, (key, value) in enumerate(self.tier.topic_records[: 0 if self.eyes.is_empty else read]):
            table.apply(offset, key, value)
        return table

    def _said(self, offset: int, digest: str) -> dict[int, Said]:
        words = {
            "agrees": Said(offset, digest),
            "is behind": Said(offset - 1, digest),
            "differs": Said(offset, "f" * 64),
        }
        return {broker: words[how] for broker, how in self.agents.items() if how in words}

    def _lead(self) -> Verdict:
        if self.led == "theirs":
            return NotLeader(leader_id=2)
        if self.led == "electing":
            return NotYet(wait=Wait.EPOCHS_DIFFER, reason="an election")
        if self.led == "unknown":
            return Unknown(cause=Cause.UNREADABLE, reason="no epoch on disk")
        return Eligible(leader_epoch=self.tier.leader_epoch, bound=self.high_watermark)

    def head(self, key: str, version_id: str | None = None) -> Stored:
        disturbance, self.disturbance = self.disturbance, None
        if disturbance is not None:
            disturbance()
        if key in self.lost:
            raise Missing(bucket="memory", key=key, operation="head", why="as the test asked")
        for record in self._known():
            for _, ref in record.objects.present():
                if ref.key == key:
                    version = version_id or ""
                    return Stored(size_bytes=ref.size_bytes, checksum=ref.checksum, version_id=version)
        raise Missing(bucket="memory", key=key, operation="head", why="never stored")

    def _known(self) -> list[SegmentRecord]:
        found = (self.tier.table.segment(LOG, each.segment_id) for each in self.tier.records.values())
        return [record for record in found if record is not None]

    # The judge.

    def delete_records(self, partition: TopicPartition, up_to: int) -> Answered:
        self._judge_people()
        self._judge_topic()
        self._judge_lead()
        check(set(self.agents.values()) == {"agrees"}, "the agents' tables are not known to be equal")
        check(not self.eyes.digest_is_early, "a digest that cannot be compared")
        check(not self.doubts, "files that could not be read")
        check(up_to > self.disk_start, "a request that moves nothing")
        reached = frontier(self.tier.view)
        check(isinstance(reached, Frontier) and up_to <= reached.offset, "beyond the frontier")
        check(up_to <= self.high_watermark, "above what is committed")
        lineage = self.tier.of_lineage()
        for offset in range(self.disk_start, up_to):
            self._judge_offset(offset, [c for c, end in lineage if c.base_offset <= offset < end])
        unsaved = self.unsaved
        check(unsaved is None or unsaved.start_offset >= up_to, "an epoch that nobody knows afterwards")
        said = self.events[-1] if self.events else None
        is_certified = isinstance(said, TrimCertified) and said.new_start == up_to
        check(is_certified, "a request without a certificate before it")
        return super().delete_records(partition, up_to)

    def _judge_people(self) -> None:
        record = self.tier.view.record
        check(self.policy.trims, "nobody wants anything trimmed")
        check(record is not None and record.topic_deleted_at_ms is None, "a log that is on record as gone")
        held = [*(record.holds if record else ()), *self.tier.newer_holds, *self.tier.lost_holds]
        check(not held, "a trim under a hold")
        until_ms = record.keep_until_ms if record else None
        check(until_ms is None or self.tier.now_ms >= until_ms, "a restore asked for time")
        check(not self.tier.pinned, "a newer agent said something that was not understood")

    def _judge_topic(self) -> None:
        check(not self.remote_is_on, "DeleteRecords on a topic with remote storage")
        check(not self.is_compacted, "DeleteRecords on a compacted topic")
        check(not self.was_compacted, "DeleteRecords on a topic that was compacted")
        check(not self.settings_are_unknown, "nobody knows how the topic is configured")

    def _judge_lead(self) -> None:
        check(self.led == "ours", "this broker does not lead, or nobody knows")
        check(self.tier.view.claims[-1].epoch == self.tier.leader_epoch, "the highest claim is another's")
        check(not self.eyes.end_is_early, "the end was asked for before our claim was in the topic")

    def _judge_offset(self, offset: int, holding: list[SegmentRecord]) -> None:
        check(any(self._is_stored(copy) for copy in holding), f"offset {offset} is nowhere in the store")
        limit_ms, limit_bytes = self.policy.local_ms, self.policy.local_bytes
        is_old = limit_ms is not None and all(
            copy.max_timestamp_ms >= 0 and self.tier.now_ms - copy.max_timestamp_ms > limit_ms
            for copy in holding
        )
        end = next(each for each in (*self.cuts[1:], LOG_END) if each > offset)
        is_much = limit_bytes is not None and bytes_of(end, LOG_END) >= limit_bytes
        check(is_old or is_much, f"offset {offset} has not expired")

    def _is_stored(self, copy: SegmentRecord) -> bool:
        return not {f"{copy.key_stem}.log", f"{copy.key_stem}.aux"} & self.lost

    # What happens.

    def run(self, eyes: Eyes | None = None, disturbance: Callable[[], None] | None = None) -> None:
        """One turn, disturbed while it asks the store; each certificate then has its outcome."""
        self.eyes, self.disturbance = eyes or Eyes(), disturbance
        self.trim()
        self.eyes, self.disturbance = Eyes(), None
        kinds = [type(event) for event in self.events]
        check(kinds == [TrimCertified, TrimOutcome] * (len(kinds) // 2), "an outcome that nobody tells")
        if self.certificates():
            check(self.certificates()[-1].new_start == self.disk_start, "a start that nobody certified")

    def lose_object(self, number: int, kind: str) -> None:
        """Somebody with the rights to do so removed a version."""
        finished = [each for each in self._known() if each.state is SegmentState.COPY_FINISHED]
        if finished:
            self.lost.add(f"{finished[number % len(finished)].key_stem}.{kind}")

    def elect(self) -> None:
        """We lead again, at a new epoch, and have not claimed it yet."""
        self.tier.leader_epoch = max(self.tier.leader_epoch, self.tier.view.claims[-1].epoch) + 1


assert BROKER not in OTHERS
