"""What is carried of one log from one run to the next: numbers that are still needed, nothing of the past.

    replicas      one life a broker: start, watermark, what lies closed on its disk, what it advanced over
    tier          the live copies, and those that are being deleted
    config, policy  timelines of what was in force and what was declared, inside the horizon
    obligations   rises of the log's start, removals, copies, deviations: each waits for what may justify it
    findings      those that are open, and inside the horizon those that are not any more
    gaps          where evidence is missing

Owns the values. Everything is bounded by what lives (segments), by the horizon (timelines, what was decided),
or by a cap that stands here; a history of any length leaves a state of the same size.

Invariant: only `fold` changes a state, and only one that it made itself; whoever is given one may keep it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rules.identity import LogId
from rules.machine.spans import NONE, Spans

LEGAL = {
    "COPY_STARTED": {"COPY_STARTED", "COPY_FINISHED", "DELETE_STARTED"},
    "COPY_FINISHED": {"COPY_FINISHED", "DELETE_STARTED"},
    "DELETE_STARTED": {"DELETE_STARTED", "DELETE_FINISHED"},
    "DELETE_FINISHED": {"DELETE_FINISHED"},
}
EPOCHS_KEPT = 16
DIGESTS_KEPT = 8  # as agents remember: so far may one table be behind another
TIMELINE_MAX = 64
FINDINGS_MAX = 1_000  # of one log; the rest is counted
REMOVALS_MAX = 10_000
RUNS_KEPT = 8  # of one emitter


@dataclass(slots=True, kw_only=True)
class Segment:
    """A closed one on a disk, or one that was there. `bytes_at_most`: all that the log held when it went."""

    base: int
    end: int
    size_bytes: int
    max_timestamp_ms: int | None
    bytes_at_most: int | None = None
    told_ms: int = 0


@dataclass(slots=True, kw_only=True)
class Advance:
    """A replica's start went from `start` to `end` in `(not_before_ms, at_ms]`; `pieces` lay there."""

    start: int
    end: int
    not_before_ms: int
    at_ms: int
    due_ms: int
    is_blind: bool  # nobody saw the disk
    pieces: list[Segment]
    uncovered: Spans | None = None  # once it was decided


@dataclass(slots=True, kw_only=True)
class Replica:
    """One life of a replica. `doubt`: what its first start passed that the log's own had not."""

    broker_id: int
    directory_id: str | None
    incarnation: int | None
    began_ms: int
    ordinal: int
    start: int | None
    start_since_ms: int  # first read as it is
    start_read_ms: int  # last read so
    start_moved_ms: int | None
    local_start: int | None
    watermark: int | None
    log_end: int | None
    disk_bytes: int | None
    has_been_in_sync: bool = False
    is_dark: bool = False
    segments: dict[int, Segment] = field(default_factory=dict)
    holes: Spans = NONE
    doubt: Spans = NONE
    passed: Spans = NONE  # with a cause: needs no other when the start passes it again
    advances: list[Advance] = field(default_factory=list)
    low_since_ms: int | None = None  # as leader, below what was published


@dataclass(slots=True, kw_only=True)
class Copy:
    """One attempt in the tier. `steps`: each state that was told, at its offset of the metadata topic."""

    segment_id: str
    base: int
    end: int
    data_end: int | None
    record_count: int | None
    size_bytes: int
    max_timestamp_ms: int | None
    leader_epoch: int
    generation: int
    steps: list[tuple[int, str]]
    started_ms: int
    changed_ms: int
    is_failed: bool = False
    is_fenced: bool = False
    missing: dict[str, tuple[int, int]] = field(default_factory=dict)  # by key: first and last such reading
    corrupt: dict[str, str] = field(default_factory=dict)  # by key: how deeply it was looked at
    is_restored: bool = False
    is_versioned: bool = False  # its objects have versions, which outlive a deletion
    epochs: tuple[tuple[int, int], ...] = ()  # epoch and its first offset in it, where they were said
    read_ms: int | None = None  # when it was last read back as a whole

    @property
    def state(self) -> str:
        """The last that followed legally: what is refused changes nothing (DESIGN §5)."""
        now = ""
        for _, step in self.steps:
            if not now or step in LEGAL[now]:
                now = step
        return now

    @property
    def missing_since_ms(self) -> int | None:
        """The first reading that did not find one of its objects which is still not there."""
        return min((since_ms for since_ms, _ in self.missing.values()), default=None)

    @property
    def covered_end(self) -> int:
        """As the uploader has it: up to where each offset from the base is in the bytes."""
        end = self.end if self.data_end is None else min(self.data_end, self.end)
        if self.record_count is not None and self.record_count != end - self.base:
            return self.base
        return end


class Buried(NamedTuple):
    """What is left of a copy that was deleted a while ago. `end` is its base where no version is kept."""

    at_ms: int
    metadata_offset: int
    generation: int
    base: int
    end: int


@dataclass(slots=True, kw_only=True)
class Removal:
    """A segment went: from the tier, or from the head of the leader's disk. Judged at `due_ms`."""

    where: str  # tier, local
    broker_id: int
    segment_id: str
    base: int
    end: int
    size_bytes: int
    max_timestamp_ms: int | None
    not_before_ms: int
    at_ms: int
    due_ms: int
    bytes_at_most: int | None  # of the log, each offset once
    bytes_counted: int | None  # however wrongly they can be counted
    covered: Spans  # by other finished copies, when it went and once it settled
    was_led: bool
    is_decided: bool = False
    is_unjustified: bool = False
    is_counted: bool = False  # to the topic's hour: no retention let it go
    start_then: int | None = None  # the log's, once it settled


@dataclass(slots=True, kw_only=True)
class Rise:
    """The log's own start rose over `[start, end)`, led by `broker_id`."""

    broker_id: int
    start: int
    end: int
    not_before_ms: int
    at_ms: int
    due_ms: int
    bytes_counted: int | None  # however wrongly they can be counted
    uncovered: Spans | None = None  # once it was decided
    advances: list[Advance] = field(default_factory=list)  # its leader's, by which it was


@dataclass(slots=True, kw_only=True)
class Fallback:
    """A replica's start went back from `old` to `new`."""

    broker_id: int
    old: int
    new: int
    not_before_ms: int
    at_ms: int
    due_ms: int
    moved_ms: int | None


@dataclass(slots=True, kw_only=True)
class EmptyRise:
    """A replica's watermark rose in an interval, at whose end its log was empty."""

    broker_id: int
    before: int
    watermark: int
    not_before_ms: int
    at_ms: int


@dataclass(slots=True, kw_only=True)
class CopyAbove:
    """A copy whose end was above every watermark that had been published."""

    segment_id: str
    base: int
    end: int
    at_ms: int


@dataclass(slots=True, kw_only=True)
class Deviation:
    """Effective retention keeps less than what was declared. `least` is the least that was in force."""

    key: str
    anchor: str
    since_ms: int
    due_ms: int
    least: int
    changes: int
    reverted_ms: int | None = None
    is_open: bool = False


@dataclass(slots=True, kw_only=True)
class Setting:
    """A value in force since some instant of `(not_before_ms, at_ms]`. None: unset."""

    not_before_ms: int
    at_ms: int
    metadata_offset: int | None
    value: str | None
    is_own: bool  # the topic's own, not a broker's default


@dataclass(slots=True, kw_only=True)
class Declared:
    """One key of one table of the policy, from an offset of its topic on."""

    policy_offset: int
    at_ms: int
    pattern: str
    key: str
    after: str | None


@dataclass(slots=True, kw_only=True)
class Permit:
    """An authorisation, a standing request of our own (`trim`), or a request through Seawall (`request`)."""

    sort: str  # delete_records, delete_topic, trim, request
    principal: str
    change_id: str
    start: int | None
    end: int | None
    from_ms: int
    to_ms: int


@dataclass(slots=True, kw_only=True)
class Hold:
    start: int
    end: int | None
    metadata_offset: int
    released_at: int | None = None  # the offset of its release


@dataclass(slots=True, kw_only=True)
class Gap:
    """Evidence is missing, of `[from_ms, to_ms]`. `broker_id` None: of any. It closes by a baseline."""

    sort: str
    broker_id: int | None
    from_ms: int
    to_ms: int
    detail: str
    closed_ms: int | None = None


@dataclass(slots=True, kw_only=True)
class Pending:
    """A condition that holds, since when, and what a finding of it would say."""

    since_ms: int
    severity: str
    ranges: Spans
    note: str


@dataclass(slots=True, kw_only=True)
class Found:
    """A finding as it is carried. `subject` and `anchor` name it for ever; the rest may grow.

    `cleared_ms`: its condition was evaluated and false; `resolved_ms`: which clearing was stated on complete
    evidence, and stands whatever is missing later. `closed_ms`, `closed_by`: restored, accepted, withdrawn.
    `happened` is the interval of what it condemns.
    """

    rule_id: str
    subject: str
    anchor: str
    severity: str
    ranges: Spans
    opened_ms: int
    happened: tuple[int, int]
    note: str
    cleared_ms: int | None = None
    resolved_ms: int | None = None
    closed_ms: int | None = None
    closed_by: str = ""


@dataclass(slots=True, kw_only=True)
class LogState:
    """Everything that is known of one log and still matters."""

    log: LogId
    topic: str
    clock_ms: int = 0
    position: tuple[int, tuple[int, str, int], int] | None = None
    tier_offset: int = -1
    kraft_offset: int = -1
    born_ms: int | None = None
    events: int = 0
    first_ms: int | None = None
    heard: dict[str, Spans] = field(default_factory=dict)

    leader_id: int | None = None
    leader_epoch: int = -1
    leadership_ms: int = 0  # the last word on leaders or in-sync replicas
    in_sync: tuple[int, ...] | None = None
    assigned: tuple[int, ...] | None = None
    leaders: dict[int, int] = field(default_factory=dict)
    unclean_epochs: list[int] = field(default_factory=list)
    epoch_starts: dict[int, int] = field(default_factory=dict)
    watermarks: dict[int, int] = field(default_factory=dict)  # by epoch
    watermark: int | None = None  # the highest that was ever published

    replicas: dict[int, Replica] = field(default_factory=dict)
    start: int | None = None  # the log's, as leaders had it
    went: Spans = NONE  # with a cause of its own, from the tier or beside one, wherever the start is
    accepted: Spans = NONE  # lost, and taken as lost by somebody
    tier: dict[str, Copy] = field(default_factory=dict)
    buried: dict[str, Buried] = field(default_factory=dict)
    is_kip405: bool = False
    is_tiered: bool = False
    claims: list[tuple[int, int]] = field(default_factory=list)
    digests: dict[int, dict[int, str]] = field(default_factory=dict)
    odd_tables: dict[int, int] = field(default_factory=dict)  # broker, offset
    sets: dict[int, tuple[int, dict[str, str]]] = field(default_factory=dict)
    lacking: dict[int, list[str]] = field(default_factory=dict)  # broker, copies not in its table
    unknown_keys: dict[str, tuple[int, int]] = field(default_factory=dict)

    was_compacted: bool = False
    config: dict[str, list[Setting]] = field(default_factory=dict)
    # How often brokers look: by term and broker, where it is not Kafka's default.
    intervals: dict[str, dict[int, int]] = field(default_factory=dict)
    policy_base: dict[str, dict[str, str]] = field(default_factory=dict)
    policy_base_offset: int = -1
    policy: list[Declared] = field(default_factory=list)
    # What these come to now; not carried.
    policy_memo: tuple[tuple[int, int, int], Any] | None = field(
        default=None, compare=False, repr=False, metadata={"is_carried": False}
    )
    adopted: dict[str, str | None] = field(default_factory=dict)
    permits: list[Permit] = field(default_factory=list)
    holds: dict[str, Hold] = field(default_factory=dict)
    restores: list[tuple[int, int, int]] = field(default_factory=list)  # at, start, end
    keep_until_ms: int | None = None
    unclean_starts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    broker_starts: dict[int, list[tuple[int, int]]] = field(default_factory=dict)  # clean ones too
    empty_rises: list[EmptyRise] = field(default_factory=list)
    deleted_ms: tuple[int, int] | None = None
    is_gone: bool = False

    rises: list[Rise] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    fallbacks: list[Fallback] = field(default_factory=list)
    above: list[CopyAbove] = field(default_factory=list)
    deviations: list[Deviation] = field(default_factory=list)
    topic_deletion_due_ms: int | None = None
    pending: dict[str, Pending] = field(default_factory=dict)
    findings: dict[str, Found] = field(default_factory=dict)
    findings_left_out: int = 0
    gaps: list[Gap] = field(default_factory=list)
    blast: dict[int, int] = field(default_factory=dict)  # by hour, segments that no retention explains


def missing(state: LogState, gap: Gap) -> None:
    """One more: it joins one that stands, of the same sort and source."""
    for known in state.gaps:
        if (known.sort, known.broker_id, known.closed_ms) == (gap.sort, gap.broker_id, gap.closed_ms):
            is_same = gap.closed_ms is None or known.detail == gap.detail
            if is_same:
                known.from_ms = min(known.from_ms, gap.from_ms)
                known.to_ms = max(known.to_ms, gap.to_ms)
                return
    state.gaps.append(gap)


def newborn(log: LogId, topic: str) -> LogState:
    """Of a log that nothing was heard of."""
    return LogState(log=log, topic=topic)
