"""What can be wrong with an event's bytes, with the spool, and with the topic of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tiering.errors import StatedError


class AuditError(StatedError):
    """evidence cannot be kept or read"""


@dataclass(kw_only=True, eq=False)
class EventError(AuditError):
    """{what} cannot be read as an event: {why}"""

    exit_code: ClassVar[int] = 50

    what: str
    why: str


@dataclass(kw_only=True, eq=False)
class EventMalformed(EventError):
    """{what} is no event: {why}"""


@dataclass(kw_only=True, eq=False)
class EventTooNew(EventError):
    """{what} cannot be read here: {why}

    Upgrade this component; nothing is lost by waiting.
    """


@dataclass(kw_only=True, eq=False)
class SpoolError(AuditError):
    """the spool {path} cannot be used"""

    exit_code: ClassVar[int] = 51

    path: str


@dataclass(kw_only=True, eq=False)
class SpoolUnusable(SpoolError):
    """the spool {path} cannot be opened: {why}

    Without it nothing that this agent does leaves evidence. Its folder must exist and be writable.
    """

    why: str


@dataclass(kw_only=True, eq=False)
class SpoolInUse(SpoolError):
    """the spool {path} is another process's

    One emitter has one spool, and one process at a time. Is an agent of this broker running already?
    """


@dataclass(kw_only=True, eq=False)
class SpoolOfAnother(SpoolError):
    """the spool {path} belongs to {found}, not to {wanted}

    It may hold events that nobody has published yet. Start that emitter with it, or move it away.
    """

    found: str
    wanted: str


@dataclass(kw_only=True, eq=False)
class SpoolTooNew(SpoolError):
    """the spool {path} was written by a newer Seawall (layout {found}, this one knows {known})"""

    found: int
    known: int


@dataclass(kw_only=True, eq=False)
class SpoolFull(SpoolError):
    """the spool {path} is full ({pending_bytes} of {limit_bytes} bytes wait for Kafka) and refuses a {kind}

    What needs this evidence must not be done. Once Kafka takes events again, there is room.
    """

    kind: str
    pending_bytes: int
    limit_bytes: int


@dataclass(kw_only=True, eq=False)
class SpoolUnwritable(SpoolError):
    """{kind} could not be put into the spool {path}: {why}

    What needs this evidence must not be done. It is not known whether the event will be found there.
    """

    kind: str
    why: str


@dataclass(kw_only=True, eq=False)
class MemoryUnusable(AuditError):
    """the observer's memory {path} cannot be opened: {why}

    Without it a deletion while the agent is down would go unseen. Its folder must exist and be writable.
    """

    exit_code: ClassVar[int] = 54

    path: str
    why: str


@dataclass(kw_only=True, eq=False)
class AuditTopicError(AuditError):
    """the topic of events cannot be used"""

    exit_code: ClassVar[int] = 52

    topic: str


@dataclass(kw_only=True, eq=False)
class AuditTopicSilent(AuditTopicError):
    """{topic} cannot be {what}: {why}

    Events wait in the spool meanwhile.
    """

    what: str
    why: str


@dataclass(kw_only=True, eq=False)
class AuditTopicUnfit(AuditTopicError):
    """{topic} could lose what it holds: {why}

    docs/FORMATS.md says what its settings must be. They are set on the topic itself, so that no default of
    the brokers can take the evidence away.
    """

    why: str
