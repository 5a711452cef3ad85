"""What can be wrong with the tables of evidence, or with adding to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audit_engine.errors import AuditError


@dataclass(kw_only=True, eq=False)
class AuditTableError(AuditError):
    """the tables of evidence cannot be added to"""

    exit_code: ClassVar[int] = 53


@dataclass(kw_only=True, eq=False)
class CommitSkipped(AuditTableError):
    """{table} did not take commit {number}: Delta holds another one of that number and skipped ours, silently

    Another ingest of the same table runs, or ran since this one began. Nothing was lost: no offset was moved.
    Let one of them run, and start it again; it goes on from what the table holds.
    """

    table: str
    number: int


@dataclass(kw_only=True, eq=False)
class OtherWriter(AuditTableError):
    """{table} was added to by another ingest at the same moment, and Delta refused ours

    Nothing was lost: no offset was moved. Let one of them run, and start it again.
    """

    table: str


@dataclass(kw_only=True, eq=False)
class TableUnfit(AuditTableError):
    """{table} is not a table that this version can add to: {why}"""

    table: str
    why: str


@dataclass(kw_only=True, eq=False)
class TableBehind(AuditTableError):
    """{table} is an older Seawall's: it has no column {columns}

    Run `seawall audit maintain`, which adds them. Nothing was read, and no offset was moved.
    """

    table: str
    columns: str


@dataclass(kw_only=True, eq=False)
class TopicReplaced(AuditTableError):
    """{topic} is not the topic that {table} was filled from: {why}

    Its offsets begin anew, so that going on would pass over events or take them for known. Nothing was read.
    Keep the tables as they are, and let audit.tables name another place for the topic that is there now.
    """

    topic: str
    table: str
    why: str


@dataclass(kw_only=True, eq=False)
class TopicEndsEarlier(AuditTableError):
    """{topic} ends before what {table} holds of it, in partitions {partitions}

    Just after a change of leader this passes by itself: run it again. If it stays, the topic has lost records
    at its end (an unclean election), which the table still has.
    """

    topic: str
    table: str
    partitions: str


@dataclass(kw_only=True, eq=False)
class UnguardedStore(AuditTableError):
    """{tables} is on a store that does not keep one writer's commit from covering another's: {why}

    Seawall needs of it that it refuses to create an object that exists (`If-None-Match: *`), as AWS S3 does.
    If this is the only process that ever writes to these tables, say so with --single-driver-i-accept.
    """

    tables: str
    why: str


@dataclass(kw_only=True, eq=False)
class OffsetsUnknown(AuditTableError):
    """how far {topic} goes cannot be told: {why}"""

    topic: str
    why: str


@dataclass(kw_only=True, eq=False)
class ReadingFailed(AuditTableError):
    """{topic} cannot be read into the tables: {why}

    What was committed stays, and the next run goes on behind it.
    """

    topic: str
    why: str


@dataclass(kw_only=True, eq=False)
class PropertyUntranslated(AuditTableError):
    """kafka.client has `{name}`, which ingest cannot hand on to Spark's own Kafka client

    Spark reads with Kafka's Java client. {known}
    """

    name: str
    known: str
