"""Facts that somebody in this process knows, said as the events that an emitter would have made of them.

For who asks the machine about what it knows itself: an agent before it deletes, the auditor of its canary.

Owns numbers, ids and the fields that follow from the log. Invariant: the same facts in the same order are the
same events.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

from rules.events import Event, LogEvent, ReplicaEvent, Source
from rules.identity import LogId
from rules.machine.told import Speaker, Told


@dataclass(kw_only=True)
class Saying:
    """All by one speaker, beside one broker, about one log; `now_ms` is when, and is the caller's to move."""

    log: LogId
    topic: str
    now_ms: int
    speaker: Speaker
    leader_epoch: int = -1
    said: list[Told] = field(default_factory=list)
    log_seq: int = 0

    def say(self, kind: type[Event], **own: Any) -> None:
        seq = len(self.said)
        is_of_log = issubclass(kind, LogEvent)
        about: dict[str, Any] = {"cluster_id": self.log.cluster_id}
        if is_of_log:
            about = {"log": self.log, "topic": self.topic, "leader_epoch": self.leader_epoch}
        if issubclass(kind, ReplicaEvent):
            about |= {
                "broker_id": self.speaker.broker_id,
                "directory_id": self.speaker.component,
                "replica_incarnation": 1,
                "ordinal": seq,
                "source": Source.LOG_DIR,
                "not_before_ms": self.now_ms,
            }
        told = "\n".join([str(self.log), str(self.speaker), str(seq)])
        event = kind(
            event_id=hashlib.sha256(told.encode()).hexdigest()[:32],
            occurred_at_ms=self.now_ms,
            **{**about, **own},
        )
        self.said.append(
            Told(
                event=event,
                speaker=self.speaker,
                seq=seq,
                log_seq=self.log_seq if is_of_log else None,
                observed_at_ms=self.now_ms,
                kind=kind.kind,
            )
        )
        self.log_seq += is_of_log
