"""What the bucket is set to, held against what the backup window promises. Pure; `s3` does the asking.

Owns the judgement: each gap with its remedy. What could not be asked is told as unknown, never as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seawall.doctor.finding import Finding, fail, ok, unknown, warn

LOCK = "s3 object lock"
ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
BLOCKS = ("BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets")


@dataclass(frozen=True, slots=True)
class Unread:
    """The store did not say, and why."""

    why: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of the lifecycle that is in force. Days are None where it does not say."""

    name: str
    prefix: str
    expires_live: bool
    noncurrent_days: int | None
    archives: bool

    def touches(self, prefix: str) -> bool:
        return prefix.startswith(self.prefix) or self.prefix.startswith(prefix)

    def covers(self, prefix: str) -> bool:
        return prefix.startswith(self.prefix)


@dataclass(frozen=True, slots=True)
class Lock:
    """Object Lock is on; `days` of the default retention, None where there is none."""

    days: int | None


def lock_of(members: Mapping[str, Any]) -> Lock | None:
    """As S3 tells it; None if it is off."""
    if members.get("ObjectLockEnabled") != "Enabled":
        return None
    default = members.get("Rule", {}).get("DefaultRetention", {})
    days = default.get("Days", default["Years"] * 365 if "Years" in default else None)
    return Lock(days)


def rule_of(members: Mapping[str, Any]) -> Rule | None:
    """A rule as S3 tells it; None if it is off."""
    if members.get("Status") != "Enabled":
        return None
    chosen = members.get("Filter", {})
    prefix = chosen.get("Prefix", chosen.get("And", {}).get("Prefix", members.get("Prefix", "")))
    expiration = members.get("Expiration", {})
    noncurrent = members.get("NoncurrentVersionExpiration", {}).get("NoncurrentDays")
    moves = [*members.get("Transitions", ()), *members.get("NoncurrentVersionTransitions", ())]
    return Rule(
        name=members.get("ID", "without a name"),
        prefix=prefix or "",
        expires_live="Days" in expiration or "Date" in expiration,
        noncurrent_days=noncurrent,
        archives=any(move.get("StorageClass") in ARCHIVES for move in moves),
    )


def judge_lifecycle(rules: Sequence[Rule] | Unread, prefix: str, window_days: int) -> Iterator[Finding]:
    """Whether removed versions stay for the window, and live objects for ever."""
    if isinstance(rules, Unread):
        yield unknown("s3 lifecycle", rules.why, rules.remedy)
        return
    ours = [rule for rule in rules if rule.touches(prefix)]
    live = [rule for rule in ours if rule.expires_live]
    for rule in live:
        remedy = (
            f"Take Expiration off rule {rule.name!r}, or {prefix!r} out of it: Seawall's policy says when."
        )
        yield fail("s3 lifecycle", f"rule {rule.name!r} removes live objects under {rule.prefix!r}", remedy)
    short = [rule for rule in ours if rule.noncurrent_days is not None and rule.noncurrent_days < window_days]
    for rule in short:
        remedy = f"Set NoncurrentDays of rule {rule.name!r} to {window_days} or more."
        why = f"takes versions after {rule.noncurrent_days} days; the window is {window_days}"
        yield fail("s3 lifecycle", f"rule {rule.name!r} {why}", remedy)
    for rule in ours:
        if rule.archives:
            remedy = "Leave GLACIER and DEEP_ARCHIVE to what need not be read: a copy from there takes hours."
            yield warn("s3 lifecycle", f"rule {rule.name!r} archives what a restore would read", remedy)
    if not any(rule.noncurrent_days is not None and rule.covers(prefix) for rule in ours):
        remedy = f"Add a rule on {prefix!r}: NoncurrentVersionExpiration of {window_days} days or more."
        yield warn("s3 lifecycle", "no rule ever takes removed versions: they cost for ever", remedy)
    elif not live and not short:
        yield ok("s3 lifecycle", f"removed versions stay for the window of {window_days} days")


def judge_lock(lock: Lock | Unread | None, window_days: int) -> Iterator[Finding]:
    """Whether a version can be kept from whoever may delete one; `None`: there is no Object Lock."""
    subject = LOCK
    if isinstance(lock, Unread):
        yield unknown(subject, lock.why, lock.remedy)
    elif lock is None:
        remedy = "Enable Object Lock on the bucket; some stores allow that only when the bucket is created."
        yield fail(subject, "not enabled: a pin or a hold would bind Seawall, but not the store", remedy)
    elif lock.days is not None and lock.days < window_days:
        remedy = f"Set the default retention to {window_days} days or more."
        why = f"keeps a version for {lock.days} days from its writing; the window is {window_days}"
        yield fail(subject, f"the default retention {why}", remedy)
    else:
        told = "no default retention" if lock.days is None else f"default retention {lock.days} days"
        yield ok(subject, f"enabled, {told}")


def judge_public(block: Mapping[str, bool] | Unread | None, is_public: bool | Unread) -> Iterator[Finding]:
    """Whether anybody but those who are named can read it."""
    subject = "s3 public access"
    remedy = "Run: aws s3api put-public-access-block with all four settings true."
    if isinstance(is_public, bool) and is_public:
        yield fail(subject, "the bucket's policy lets everybody in", remedy)
        return
    if isinstance(block, Unread):
        yield unknown(subject, block.why, block.remedy)
    elif block is None:
        yield warn(subject, "nothing blocks public access", remedy)
    elif missing := [name for name in BLOCKS if not block.get(name)]:
        yield warn(subject, f"not set: {', '.join(missing)}", remedy)
    else:
        yield ok(subject, "blocked")
