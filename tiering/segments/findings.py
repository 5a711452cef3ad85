"""What a table says of a record that it does not follow, or follows with a word.

    reason              the record                                                              followed
    foreign_key         has a key that is not one of ours                                       no
    wrong_partition     is of a log whose records belong into another partition of the topic    no
    unreadable          is malformed, or names another log or cluster than its key              no
    too_new             asks for a newer reader                                                 no
    fenced              is a copy by a leader of an epoch below a claim before it               no
    fenced_log          is a log's, by a leader of an epoch below the standing claim            no
    lost_race           is a log's, and based on another record than the last                   no
    transition          may not follow what is known of the segment                             no
    tombstone           forgets what is not deleted                                             no
    stale_delete        is a deletion by a leader of an epoch below a claim before it           yes
    coverage_lost       is a deletion that makes the frontier fall                              yes

A copy adds coverage, so only the standing leader's word is taken for it. A deletion takes coverage away: the
objects may be gone whoever removed them, so any word is taken, and a wrong one is said aloud. What is not
followed stays in the topic and may outlive, by compaction, what is: the standing leader's agent writes the
latter again (`LogView.shadowed`).

Owns the reasons. Invariant: nothing that a table does not follow goes without a finding.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(str, Enum):
    """Stable, for programs."""

    FOREIGN_KEY = "foreign_key"
    WRONG_PARTITION = "wrong_partition"
    UNREADABLE = "unreadable"
    TOO_NEW = "too_new"
    FENCED = "fenced"
    FENCED_LOG = "fenced_log"
    LOST_RACE = "lost_race"
    TRANSITION = "transition"
    TOMBSTONE = "tombstone"
    STALE_DELETE = "stale_delete"
    COVERAGE_LOST = "coverage_lost"

    @property
    def followed(self) -> bool:
        return self in (Reason.STALE_DELETE, Reason.COVERAGE_LOST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One record of the metadata topic, and what is wrong with it."""

    reason: Reason
    offset: int
    key: bytes
    detail: str
