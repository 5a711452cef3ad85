"""What a table of the policy can declare: each key with its kind, its default and when a change weakens it.

Owns the list, and it is all there is: the reader, the writer, the comparison of two policies, `TopicPolicy`
and the page docs/POLICY.md follow it. Refuses to judge one key by another: that is `topic`'s.

Invariant: a key's name ends with the unit of its plain numbers, and says nothing that no code follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rules.policy import values, weakening
from rules.policy.quantities import TIME_UNITS, UNLIMITED
from rules.policy.values import ANYONE, Form, Permission, Value
from rules.policy.weakening import Judge, Weakening

# Kafka Streams purges these topics by DeleteRecords all day, and its reset tool deletes them (KIP-284).
STREAMS_PURGED = "*-repartition"
UNDECLARED = "undeclared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """`default` is what holds where no table says anything; None is undeclared."""

    name: str
    form: Form
    default: Value | None
    weakens: Judge
    meaning: str
    default_of_purged: Value | None = None  # of the topics that Kafka Streams purges, where it differs

    def spoken(self, value: Value | None) -> str:
        """For people: without the quotes of a file."""
        if value is None:
            return UNDECLARED
        human = self.form.human(value)
        if isinstance(human, bool):
            return "true" if human else "false"
        return (", ".join(human) or "nobody") if isinstance(human, list) else str(human)


_DAY = TIME_UNITS["d"]
_HOUR = TIME_UNITS["h"]

_SHRINKS = weakening.when_less(Weakening.SHRINKS)
_OPENS_LESS = weakening.when_less(Weakening.OPENS)
_OPENS_MORE = weakening.when_more(Weakening.OPENS)

_ALL = (
    Key(
        name="total_retention_ms",
        form=values.RETENTION_TIME,
        default=None,
        weakens=_SHRINKS,
        meaning="How long records are kept at all, on disk or in S3, by their timestamps.",
    ),
    Key(
        name="total_retention_bytes",
        form=values.RETENTION_BYTES,
        default=None,
        weakens=_SHRINKS,
        meaning="How much of a partition is kept at all, each offset counted once.",
    ),
    Key(
        name="local_retention_ms",
        form=values.RETENTION_TIME,
        default=None,
        weakens=_SHRINKS,
        meaning="How long records are kept on the brokers' disks. Undeclared: as long as in total.",
    ),
    Key(
        name="local_retention_bytes",
        form=values.RETENTION_BYTES,
        default=None,
        weakens=_SHRINKS,
        meaning="How much of a partition is kept on each broker's disk. Undeclared: as much as in total.",
    ),
    Key(
        name="record_deletion",
        form=values.PERMISSION,
        default=Permission.AUTHORISED,
        default_of_purged=Permission.FREE,
        weakens=weakening.when_freer,
        meaning="Whether records may be deleted on request (DeleteRecords).",
    ),
    Key(
        name="topic_deletion",
        form=values.PERMISSION,
        default=Permission.AUTHORISED,
        default_of_purged=Permission.FREE,
        weakens=weakening.when_freer,
        meaning="Whether the topic may be deleted.",
    ),
    Key(
        name="authorisers",
        form=values.PRINCIPALS,
        default=(ANYONE,),
        weakens=weakening.when_more_may,
        meaning="Who may authorise a deletion, and change what is declared for these topics.",
    ),
    Key(
        name="declare_grace_ms",
        form=values.TIME,
        default=1 * _HOUR,
        weakens=_OPENS_MORE,
        meaning="How long before or after a change in the cluster its declaration may come.",
    ),
    Key(
        name="tiering",
        form=values.FLAG,
        default=False,
        weakens=weakening.when_off,
        meaning="Copy closed segments to S3.",
    ),
    Key(
        name="upload_bytes_per_s",
        form=values.RETENTION_BYTES,
        default=UNLIMITED,
        weakens=weakening.never,
        meaning="The rate that copying a topic's segments keeps to, for each agent.",
    ),
    Key(
        name="trim",
        form=values.FLAG,
        default=False,
        weakens=weakening.when_on,
        meaning="Delete from the brokers' disks what is in S3, verified, and past its local retention.",
    ),
    Key(
        name="remote_deletion",
        form=values.FLAG,
        default=False,
        weakens=weakening.when_on,
        meaning="Delete from S3 what is past its total retention or below the log's start.",
    ),
    Key(
        name="delete_grace_ms",
        form=values.TIME,
        default=1 * _DAY,
        weakens=_OPENS_LESS,
        meaning="How long a segment stays in S3 after its deletion was recorded.",
    ),
    Key(
        name="blast_limit_segments_per_hour",
        form=values.whole(0, 1_000_000),
        default=100,
        weakens=_OPENS_MORE,
        meaning="How many segments of a topic may go within an hour before deletions stop.",
    ),
    Key(
        name="backup_window_days",
        form=values.whole(0, 36_500),
        default=7,
        weakens=_SHRINKS,
        meaning="For how many days what was deleted from S3 can be put back.",
    ),
    Key(
        name="scrub_interval_ms",
        form=values.INTERVAL,
        default=30 * _DAY,
        weakens=weakening.when_more(Weakening.ENDS),
        meaning="Within which time each object in S3 is read again and verified.",
    ),
    Key(
        name="copy_deadline_ms",
        form=values.INTERVAL,
        default=None,
        weakens=weakening.when_more(Weakening.ENDS),
        meaning="Within which time a copy that was started must have ended (SEG-11). Undeclared: an hour.",
    ),
    Key(
        name="hold_kafka",
        form=values.FLAG,
        default=False,
        weakens=weakening.never,
        meaning=(
            "Whether a hold also sets Kafka's own retention of the topic to unlimited, as a declared change, "
            "until it is released. The brokers' disks must have room for it."
        ),
    ),
    Key(
        name="audit_suppress",
        form=values.SUPPRESSIONS,
        default=(),
        weakens=weakening.when_longer_list,
        meaning=(
            "What the audit finds and pages nobody for, until a day: "
            '`["RET-05 until 2026-12-31 by team-orders: why"]`.'
        ),
    ),
)

KEYS: Mapping[str, Key] = {key.name: key for key in _ALL}
