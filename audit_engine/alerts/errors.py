"""What keeps alerts from being delivered. What a receiver does is none: it is on record, and tried again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audit_engine.errors import AuditError


@dataclass(kw_only=True, eq=False)
class AlertError(AuditError):
    """alerts cannot be delivered"""

    exit_code: ClassVar[int] = 61


@dataclass(kw_only=True, eq=False)
class AlertRecordUnusable(AlertError):
    """the record of alerts {path} cannot be used: {why}

    It says what was told to whom. Its folder must exist and be writable. If it is broken, move it away: what
    is open is then told once more, with the same ids, and what ended meanwhile has to be closed by hand.
    """

    path: str
    why: str


@dataclass(kw_only=True, eq=False)
class DeliveryUnderWay(AlertError):
    """another process delivers the alerts of {path}

    It delivers what this one would have. Two at a time would mix up the order within an incident.
    """

    path: str


@dataclass(kw_only=True, eq=False)
class NoSuchEndpoint(AlertError):
    """there is no endpoint {name} in the settings; there is {known}"""

    name: str
    known: str


@dataclass(kw_only=True, eq=False)
class NoSuchMessage(AlertError):
    """no message {message_id} is on record for {endpoint}; `seawall alerts list` lists those there are"""

    message_id: str
    endpoint: str


@dataclass(kw_only=True, eq=False)
class SecretMissing(AlertError):
    """endpoint {name}: {what} is to be had from {reference}, and is not: {why}"""

    name: str
    what: str
    reference: str
    why: str
