"""Below which offset a host's copy of the metadata log is committed: one answer, held against what was read.

A copy may end in records that are not committed, and that another controller's will replace. The high
watermark `h` of the quorum's leader in epoch `E` says that all below `h` of *its* log stays for ever. This
host's copy, read up to some record of epoch `L`, begins like the log of the leader of `L` (Raft's log
matching). So

    L >= E    the two agree below h, as far as the copy goes: all below h is committed
    L < E     the copy may hold what the leader of E never had: nothing is known until a record of E is read

A leader begins its epoch with a record, so the second case ends by itself. A snapshot is made of committed
records alone, up to one of the epoch in its name: where the quorum cannot be asked, a snapshot's end is as
good as a watermark of that epoch, and the rest waits.

Owns this reasoning. Invariant: never above what is committed; -1 where nothing is known.
"""

from __future__ import annotations

from tiering.cluster.image import ClusterImage
from tiering.cluster.interface import Unknown
from tiering.cluster.metadata_files import MetadataListing
from tiering.cluster.quorum import QuorumMark

NOTHING_KNOWN = -1


def committed_below(mark: QuorumMark | Unknown, read: ClusterImage) -> int:
    """By the quorum's word. `read` is what was read of this host's copy, to its last record."""
    if isinstance(mark, Unknown) or read.epoch < mark.leader_epoch:
        return NOTHING_KNOWN
    return mark.high_watermark


def committed_by_snapshots(listing: MetadataListing, read: ClusterImage) -> int:
    """By the newest snapshot of the directory that what was read agrees with."""
    ends = (each.end_offset for each in listing.snapshots if each.epoch <= read.epoch)
    return max(ends, default=NOTHING_KNOWN)
