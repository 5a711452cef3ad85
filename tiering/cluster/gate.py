"""T1, only committed data leaves: how far a log may be copied, as a pure function of what is known of it.

`[.., bound)` may leave when all of this holds, and nothing may when any of it is not known:

    this broker leads the log                       else two agents copy, and one of them may be beside a
                                                    deposed leader with records that nobody else has
    ListOffsets(latest) was answered at the epoch   else the high watermark belongs to a later leader, and
    at which this broker leads                      covers other bytes than those on this disk
    the newest epoch in this replica's              else who leads was read from a metadata log whose end is
    leader-epoch-checkpoint is that epoch too       not committed, and this replica never led at this epoch
    the topic is the one whose directory this is    else offsets of a topic made anew under the old name count

bound = the least of: the high watermark, the last stable offset, and the high watermark in the broker's
checkpoint file where there is one. A checkpoint may be old, so it may lower the bound and never raises it.

Why the equality of epochs is enough. One broker leads an epoch, so an answer of epoch e comes from the leader
of e. A replica writes e into its leader-epoch-checkpoint either as that leader, or as a follower that appends
a batch of e, having first truncated whatever its leader does not have. Either way it agrees with the leader
of e on every offset below that leader's high watermark. This holds whatever named this broker the leader:
the metadata log or the admin API may be late, and the bytes are still the committed ones.

Owns this decision. Refuses to ask anyone. It is made before the first byte is read, and again, by `confirm`,
before COPY_FINISHED.

Invariant: `Eligible` means that the bytes of this replica below `bound` are, for good, those of the log.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from tiering.cluster.interface import Cause, LeaderOffsets, Leadership, Unknown
from tiering.log.wire import Uuid


class Wait(str, Enum):
    """What has to pass before it may leave. The values are stable: they label metrics."""

    NOT_COMMITTED = "not_committed"  # it ends above the high watermark
    OPEN_TRANSACTION = "open_transaction"  # it ends above the last stable offset
    CHECKPOINT_BEHIND = "checkpoint_behind"  # it ends above the high watermark in the checkpoint file
    EPOCHS_DIFFER = "epochs_differ"  # leader, metadata and disk: an election is under way
    LEADERS_DIFFER = "leaders_differ"  # the cluster names another leader: the same
    TOPICS_DIFFER = "topics_differ"  # the topic was made anew
    EPOCH_MOVED = "epoch_moved"  # confirm: another epoch than when the copy began


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """All that is known of one replica on this host, and of its log, at one moment."""

    broker_id: int
    topic_id: Uuid  # of the directory
    leadership: Leadership | Unknown
    offsets: LeaderOffsets | Unknown
    local_epoch: int | None  # the newest in leader-epoch-checkpoint; None: blank, absent or unreadable
    checkpoint_high_watermark: int | None  # None: no entry, or no file


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligible:
    """This broker leads at `leader_epoch`, and what ends at or below `bound` may leave."""

    leader_epoch: int
    bound: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NotYet:
    """It may not leave now, and it may later."""

    wait: Wait
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotLeader:
    """Another broker leads, or none. A fact that somebody stated, never a lack of one."""

    leader_id: int | None


Verdict: TypeAlias = Eligible | NotYet | NotLeader | Unknown


def committed_bound(view: LogView) -> Verdict:
    """How far the log may be copied from this replica."""
    leadership, offsets = view.leadership, view.offsets
    if isinstance(leadership, Unknown):
        return leadership
    if leadership.topic_id != view.topic_id:
        return _topics_differ(view, leadership.topic_id)
    if leadership.leader_id != view.broker_id:
        return NotLeader(leader_id=leadership.leader_id)
    if isinstance(offsets, Unknown):
        return offsets
    if offsets.topic_id != view.topic_id:
        return _topics_differ(view, offsets.topic_id)
    return _epochs_differ(view, leadership, offsets) or Eligible(
        leader_epoch=offsets.leader_epoch, bound=_bound(view, offsets)
    )


def may_leave(view: LogView, end_offset: int) -> Verdict:
    """Whether a closed segment that ends at `end_offset` may be copied now."""
    verdict = committed_bound(view)
    if not isinstance(verdict, Eligible) or end_offset <= verdict.bound:
        return verdict
    assert isinstance(view.offsets, LeaderOffsets)
    return _above(end_offset, view.offsets, view.checkpoint_high_watermark)


def confirm(begun: Eligible, view: LogView, end_offset: int) -> Verdict:
    """The second asking, before COPY_FINISHED: the same, and still at the epoch the copy was begun in."""
    verdict = may_leave(view, end_offset)
    if isinstance(verdict, Eligible) and verdict.leader_epoch != begun.leader_epoch:
        reason = f"begun at leader epoch {begun.leader_epoch}, now {verdict.leader_epoch}"
        return NotYet(wait=Wait.EPOCH_MOVED, reason=reason)
    return verdict


def _bound(view: LogView, offsets: LeaderOffsets) -> int:
    bound = min(offsets.high_watermark, offsets.last_stable_offset)
    checkpoint = view.checkpoint_high_watermark
    return bound if checkpoint is None else min(bound, checkpoint)


def _topics_differ(view: LogView, found: Uuid) -> NotYet:
    reason = f"the name now stands for topic {found}, and this directory is of topic {view.topic_id}"
    return NotYet(wait=Wait.TOPICS_DIFFER, reason=reason)


def _epochs_differ(view: LogView, leadership: Leadership, offsets: LeaderOffsets) -> NotYet | Unknown | None:
    if view.local_epoch is None:
        return Unknown(cause=Cause.UNREADABLE, reason="leader-epoch-checkpoint holds no epoch")
    if leadership.leader_epoch is None:
        return Unknown(cause=Cause.PARTIAL, reason="it is not known at which epoch this broker leads")
    if not offsets.leader_epoch == leadership.leader_epoch == view.local_epoch:
        reason = (
            f"leader epoch {offsets.leader_epoch} by the leader, {leadership.leader_epoch} by the metadata, "
            f"{view.local_epoch} on disk"
        )
        return NotYet(wait=Wait.EPOCHS_DIFFER, reason=reason)
    if offsets.leader_id != view.broker_id:
        reason = f"the cluster names broker {offsets.leader_id} as the leader"
        return NotYet(wait=Wait.LEADERS_DIFFER, reason=reason)
    return None


def _above(end_offset: int, offsets: LeaderOffsets, checkpoint: int | None) -> NotYet:
    if end_offset > offsets.high_watermark:
        wait, limit = Wait.NOT_COMMITTED, offsets.high_watermark
    elif end_offset > offsets.last_stable_offset:
        wait, limit = Wait.OPEN_TRANSACTION, offsets.last_stable_offset
    else:
        assert checkpoint is not None
        wait, limit = Wait.CHECKPOINT_BEHIND, checkpoint
    return NotYet(wait=wait, reason=f"ends at {end_offset}, and only what is below {limit} may leave")
