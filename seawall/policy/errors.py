"""What can be wrong with a policy file, with the topic of declared changes, and with applying one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rules.policy import PolicyRefused
from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class PolicyFileError(SeawallError):
    """the policy file {path} cannot be used"""

    exit_code: ClassVar[int] = 40

    path: Path


@dataclass(kw_only=True, eq=False)
class PolicyFileUnreadable(PolicyFileError):
    """the policy file {path} cannot be read: {why}"""

    why: str


@dataclass(kw_only=True, eq=False)
class PolicyFileRefused(PolicyFileError):
    """{lines}"""

    lines: str
    problems: tuple[str, ...]

    @classmethod
    def for_refusal(cls, path: Path, refused: PolicyRefused) -> PolicyFileRefused:
        problems = tuple(map(str, refused.problems))
        return cls(
            path=path, lines="\n".join(f"{path}: {problem}" for problem in problems), problems=problems
        )


@dataclass(kw_only=True, eq=False)
class PolicyTopicError(SeawallError):
    """the topic of declared changes cannot be used"""

    exit_code: ClassVar[int] = 41


@dataclass(kw_only=True, eq=False)
class PolicyTopicSilent(PolicyTopicError):
    """{topic} cannot be {what}: {why}"""

    topic: str
    what: str
    why: str


@dataclass(kw_only=True, eq=False)
class PolicyTopicUnfit(PolicyTopicError):
    """{topic} could lose what it holds: {why}

    It keeps each declared change for ever, one behind the other: one partition, cleanup.policy=delete,
    retention.ms=-1 and retention.bytes=-1 set on the topic itself, no unclean elections. Correct its
    settings; a topic with more partitions, or with a beginning that is gone, has to be made anew, and the
    policy applied again.
    """

    topic: str
    why: str


@dataclass(kw_only=True, eq=False)
class PolicyNotKnown(PolicyTopicError):
    """which policy is in force cannot be told: {why}

    Upgrade this Seawall. Until then it deletes nothing that a policy would have to allow.
    """

    why: str


@dataclass(kw_only=True, eq=False)
class PolicyNotApplied(SeawallError):
    """the policy was not applied"""

    exit_code: ClassVar[int] = 42


@dataclass(kw_only=True, eq=False)
class PlanMoved(PolicyNotApplied):
    """this is plan {plan_id}, and {expected} was asked for; nothing was changed

    Either the file is another one, or another change was applied since that plan was made. Read this plan.
    """

    plan_id: str
    expected: str


@dataclass(kw_only=True, eq=False)
class NotAnAuthoriser(PolicyNotApplied):
    """{principal} may not change what is declared for {tables}; nothing was changed

    The policy in force names who may: {authorisers}.
    """

    principal: str
    tables: str
    authorisers: str


@dataclass(kw_only=True, eq=False)
class TrimRefused(PolicyNotApplied):
    """trim cannot be on for {topics}; nothing was changed

    Deleting local records would delete them from Kafka's own remote storage, too, and is no operation that a
    compacted topic has. Declare trim = false for these topics.
    """

    topics: str


@dataclass(kw_only=True, eq=False)
class TopicsNotKnown(PolicyNotApplied):
    """trim would be on for topics whose settings are not known: {topics}; nothing was changed

    Whether trim is safe there cannot be told: {why}.
    """

    topics: str
    why: str


@dataclass(kw_only=True, eq=False)
class ApplyOvertaken(PolicyNotApplied):
    """{winner} was applied at the same time, and came first; this change does not count

    Both were planned from the same policy. Look at the new plan, and apply again if it is still right.
    """

    winner: str


@dataclass(kw_only=True, eq=False)
class ChangeTooLarge(PolicyNotApplied):
    """the policy takes {size_bytes} bytes as a record, and {limit_bytes} is the limit; nothing was changed

    Use patterns in place of a table for each topic.
    """

    size_bytes: int
    limit_bytes: int


@dataclass(kw_only=True, eq=False)
class ApplyUncertain(PolicyNotApplied):
    """whether the change was recorded is not known: {why}

    Apply it again: if it was, nothing is left to change.
    """

    why: str
