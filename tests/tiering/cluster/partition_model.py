"""A partition and its three replicas, small enough to be right: what Kafka's replication does and no more.

Owns the truth (`committed`, for ever once it is) and what each broker believes of it. A deposed leader goes
on leading until it hears of it, elections are clean, and a host's metadata log may be late, or end in an
election that never comes to be committed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tiering.cluster.gate import LogView
from tiering.cluster.interface import LeaderOffsets, Leadership, Recovery
from tiering.log.wire import Uuid

BROKERS = (1, 2, 3)
Kind = Literal["plain", "opens", "decides"]  # of a transaction; one is open at a time


class Written(NamedTuple):
    """A record. `number` is different for each one ever written."""

    epoch: int
    number: int
    kind: Kind


@dataclass(slots=True)
class Replica:
    """A partition directory on one broker, and that broker's belief about its role."""

    topic_id: Uuid
    log: list[Written] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)  # as leader-epoch-checkpoint has them
    leads_at: int | None = None
    high_watermark: int = 0

    def assign(self, epoch: int) -> None:
        start = len(self.log)
        self.epochs = [*((e, at) for e, at in self.epochs if at < start), (epoch, start)]

    def truncate(self, end: int) -> None:
        self.log = self.log[:end]
        self.epochs = [(e, at) for e, at in self.epochs if at < end]


class PartitionModel:
    """The partition, its controller, and the hosts' metadata logs."""

    def __init__(self) -> None:
        self.written = 0
        self.topics = 0
        self.committed: dict[Uuid, list[Written]] = {}
        self.leaders: dict[tuple[Uuid, int], int] = {}  # who ever led: one an epoch
        self.replicas: dict[int, Replica] = {}
        self.create(leader=1)
        self.metadata = dict.fromkeys(BROKERS, self._leadership(self.leader, self.epoch))

    def create(self, leader: int) -> None:
        """Make the topic, or make it anew. Brokers that have not heard keep the old directory."""
        self.topics += 1
        self.topic_id = Uuid(f"topic-{self.topics}")
        self.committed[self.topic_id] = []
        self.leader, self.epoch, self.isr = leader, 0, set(BROKERS)
        self.leaders[self.topic_id, 0] = leader
        if not self.replicas:
            for broker in BROKERS:
                self.hear(broker)

    def elect(self, leader: int) -> None:
        """A clean election, in the controller; the brokers hear of it later."""
        if leader in self.isr and self._current(leader):
            self.leader = leader
            self.epoch += 1
            self.leaders[self.topic_id, self.epoch] = leader

    def hear(self, broker: int) -> None:
        """The broker applies what is committed in its metadata log."""
        if not self._current(broker):
            self.replicas[broker] = Replica(topic_id=self.topic_id)
        replica = self.replicas[broker]
        if broker != self.leader:
            replica.leads_at = None
        elif replica.leads_at != self.epoch:
            replica.leads_at = self.epoch
            replica.assign(self.epoch)

    def produce(self, broker: int, kind: Kind = "plain") -> None:
        """Any broker that believes that it leads takes records, deposed or not."""
        replica = self.replicas[broker]
        if replica.leads_at is not None:
            self.written += 1
            replica.log.append(Written(replica.leads_at, self.written, kind))

    def fetch(self, broker: int) -> None:
        """The broker follows the leader: truncates what that one does not have, and takes what it has."""
        leader = self.replicas[self.leader]
        if broker == self.leader or leader.leads_at != self.epoch or not self._current(self.leader):
            return
        self.hear(broker)
        replica = self.replicas[broker]
        same = _common(replica.log, leader.log)
        replica.truncate(same)
        for record in leader.log[same:]:
            if not replica.epochs or replica.epochs[-1][0] < record.epoch:
                replica.assign(record.epoch)
            replica.log.append(record)
        replica.high_watermark = min(leader.high_watermark, len(replica.log))

    def commit(self) -> None:
        """The leader's high watermark: what every in-sync replica has."""
        leader = self.replicas[self.leader]
        if leader.leads_at != self.epoch or not self._current(self.leader):
            return
        have = [_common(self.replicas[b].log, leader.log) for b in self.isr if self._current(b)]
        if len(have) == len(self.isr):
            leader.high_watermark = max(leader.high_watermark, min(have))
        truth = self.committed[self.topic_id]
        truth += leader.log[len(truth) : leader.high_watermark]

    def shrink(self, broker: int) -> None:
        if broker != self.leader:
            self.isr.discard(broker)

    def expand(self, broker: int) -> None:
        """A replica that has all that is committed is in sync again."""
        truth = self.committed[self.topic_id]
        if self._current(broker) and self.replicas[broker].log[: len(truth)] == truth:
            self.isr.add(broker)

    def see(self, host: int) -> None:
        """The metadata log on a host reaches the controller's."""
        self.metadata[host] = self._leadership(self.leader, self.epoch)

    def see_uncommitted(self, host: int, leader: int) -> None:
        """The metadata log on a host ends in an election that is truncated again later."""
        self.metadata[host] = self._leadership(leader, self.epoch + 1)

    def answer(self, broker: int) -> LeaderOffsets | None:
        """What ListOffsets(latest) says when it reaches this broker; None: it knows that it does not lead."""
        replica = self.replicas[broker]
        if replica.leads_at is None:
            return None
        return LeaderOffsets(
            topic_id=replica.topic_id,
            leader_id=broker,
            leader_epoch=replica.leads_at,
            high_watermark=replica.high_watermark,
            last_stable_offset=_first_open(replica.log[: replica.high_watermark]),
            log_start=0,
        )

    def view(
        self, host: int, offsets: LeaderOffsets, *, checkpoint: int | None = None, epoch: int | None = None
    ) -> LogView:
        """What an agent on that host puts together; `epoch` is one that it read from disk earlier."""
        replica = self.replicas[host]
        on_disk = replica.epochs[-1][0] if replica.epochs else None
        return LogView(
            broker_id=host,
            topic_id=replica.topic_id,
            leadership=self.metadata[host],
            offsets=offsets,
            local_epoch=on_disk if epoch is None else epoch,
            checkpoint_high_watermark=checkpoint,
        )

    def is_committed_here(self, host: int, bound: int) -> bool:
        """T1 itself: the bytes of this replica below `bound` are those of the log, for good, and decided."""
        replica = self.replicas[host]
        truth = self.committed[replica.topic_id]
        end = min(bound, len(replica.log))
        return replica.log[:end] == truth[:end] and bound <= _first_open(truth)

    def _current(self, broker: int) -> bool:
        return broker in self.replicas and self.replicas[broker].topic_id == self.topic_id

    def _leadership(self, leader: int, epoch: int) -> Leadership:
        return Leadership(
            topic="orders",
            topic_id=self.topic_id,
            partition=0,
            leader_id=leader,
            leader_epoch=epoch,
            replicas=BROKERS,
            isr=tuple(sorted(self.isr)),
            recovery=Recovery.RECOVERED,
        )


def _common(ours: list[Written], theirs: list[Written]) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b),
        min(len(ours), len(theirs)),
    )


def _first_open(log: list[Written]) -> int:
    """Where the open transaction begins, or where the log ends: the last stable offset."""
    opened: int | None = None
    for offset, record in enumerate(log):
        if record.kind == "opens" and opened is None:
            opened = offset
        elif record.kind == "decides":
            opened = None
    return len(log) if opened is None else opened
