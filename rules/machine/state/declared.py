"""What was in force, what was declared, and what was asked for or held."""

from __future__ import annotations

from dataclasses import dataclass


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
