"""What somebody allows: a deletion of records or of a topic, before it is done or shortly after.

    Asked        who allows what, of which range, from when until when
    refuse       what the policy in force says to it
    event_of     the `operation_authorised` that the audit goes by

Nothing is deleted here, and nobody is kept from deleting: Kafka's ACLs say who may. What is said here is what
the audit holds a deletion against when it sees one.

Owns these rules. Refuses a word that would count for nothing: of whom the policy does not name, of what it
never allows or allows anybody, of a time that is over. Invariant: what is not refused here, the audit takes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rules.events import OperationAuthorised
from rules.events.operators import Operation
from rules.policy.quantities import write_time
from rules.policy.topic import TopicPolicy
from rules.policy.values import Permission
from seawall.authorise.errors import NeverAllowed, NobodyNeedsTo, NotAmongAuthorisers, TooLate

LONGEST_MS = 31 * 24 * 3_600_000  # an authorisation that nobody ends is a policy: declare it

KEYS = {Operation.DELETE_RECORDS: "record_deletion", Operation.DELETE_TOPIC: "topic_deletion"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """None as `partition`: all of them; as `end_offset`: to the end; of a topic there is neither."""

    operation: Operation
    principal: str
    change_id: str
    reason: str
    topic: str
    topic_id: str
    partition: int | None
    start_offset: int | None
    end_offset: int | None
    valid_from_ms: int
    expires_at_ms: int

    @property
    def spoken(self) -> str:
        """What may be done, in words."""
        if self.operation is Operation.DELETE_TOPIC:
            return f"topic {self.topic} ({self.topic_id}) may be deleted"
        where = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        end = "the end" if self.end_offset is None else f"{self.end_offset})"
        return f"of {where} ({self.topic_id}) the records [{self.start_offset}, {end} may be deleted"


def refuse(asked: Asked, policy: TopicPolicy, *, now_ms: int) -> None:
    """NeverAllowed, NobodyNeedsTo, NotAmongAuthorisers, TooLate; nothing where the word counts."""
    key = KEYS[asked.operation]
    permission: Permission = getattr(policy, key)
    if permission is Permission.NEVER:
        raise NeverAllowed(key=key, topic=asked.topic)
    if permission is Permission.FREE:
        raise NobodyNeedsTo(key=key, topic=asked.topic)
    if not policy.may_be_authorised_by(asked.principal):
        named = ", ".join(policy.authorisers) or "nobody"
        raise NotAmongAuthorisers(principal=asked.principal, topic=asked.topic, authorisers=named)
    if asked.valid_from_ms < now_ms - policy.declare_grace_ms:
        raise TooLate(topic=asked.topic, grace=write_time(policy.declare_grace_ms))


def event_of(asked: Asked, *, cluster_id: str, event_id: str, now_ms: int) -> OperationAuthorised:
    """As the audit hears it."""
    return OperationAuthorised(
        event_id=event_id,
        occurred_at_ms=now_ms,
        cluster_id=cluster_id,
        principal=asked.principal,
        change_id=asked.change_id,
        operation=asked.operation,
        topic_id=asked.topic_id,
        topic=asked.topic,
        partition=asked.partition,
        start_offset=asked.start_offset,
        end_offset=asked.end_offset,
        valid_from_ms=asked.valid_from_ms,
        expires_at_ms=asked.expires_at_ms,
        reason=asked.reason,
    )
