"""What one look came to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    OK = "ok"
    WARN = "warn"  # works, but not as it should
    FAIL = "fail"
    UNKNOWN = "unknown"  # wanted to look and could not
    SKIPPED = "skipped"  # nothing to look at: not configured, or not needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    subject: str
    status: Status
    detail: str
    remedy: str | None = None


def ok(subject: str, detail: str) -> Finding:
    return Finding(subject=subject, status=Status.OK, detail=detail)


def warn(subject: str, detail: str, remedy: str) -> Finding:
    return Finding(subject=subject, status=Status.WARN, detail=detail, remedy=remedy)


def fail(subject: str, detail: str, remedy: str) -> Finding:
    return Finding(subject=subject, status=Status.FAIL, detail=detail, remedy=remedy)


def unknown(subject: str, reason: str, remedy: str | None = None) -> Finding:
    return Finding(subject=subject, status=Status.UNKNOWN, detail=reason, remedy=remedy)


def skipped(subject: str, reason: str, remedy: str | None = None) -> Finding:
    return Finding(subject=subject, status=Status.SKIPPED, detail=reason, remedy=remedy)
