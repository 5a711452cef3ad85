"""That somebody takes a loss as it is: which findings can be, and the events that say so.

Owns the way from a finding, as the tables have it, to `loss_accepted`. Refuses a finding that is no loss:
what is set wrong is set right, what never came is `accept-gap`'s. Invariant: an event names one finding, and
a range that has all of it, and no more than it had when somebody looked.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rules.events import LossAccepted
from rules.identity import LogId
from rules.machine.accepted import CAN_BE_TAKEN_AS_LOST
from seawall.errors import SeawallError

GAP = "AUD-01"


@dataclass(kw_only=True, eq=False)
class LossNotAccepted(SeawallError):
    """nothing was accepted"""

    exit_code: ClassVar[int] = 76


@dataclass(kw_only=True, eq=False)
class NoLoss(LossNotAccepted):
    """nothing was accepted: {rule_id} ({finding_id}) is no loss of records, and ends when it is put right

    What never came of the evidence: `seawall audit accept-gap`. To page nobody meanwhile: `seawall audit
    suppress`.
    """

    finding_id: str
    rule_id: str


@dataclass(kw_only=True, eq=False)
class OtherCluster(LossNotAccepted):
    """nothing was accepted: the finding is of cluster {found}, and this one is {cluster_id}

    Whoever judges that cluster reads its topic of events: name its brokers, --bootstrap.
    """

    found: str
    cluster_id: str


def incident_of(root: Mapping[str, Any], findings: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The open losses of the same incident, that one first."""
    others = (
        each
        for each in findings
        if each["incident"] == root["incident"]
        and each["finding_id"] != root["finding_id"]
        and each["status"] == "open"
        and each["rule_id"] in CAN_BE_TAKEN_AS_LOST
    )
    return [root, *others]


def cluster_of(finding: Mapping[str, Any]) -> str:
    """Raises NoLoss."""
    if finding["rule_id"] not in CAN_BE_TAKEN_AS_LOST:
        raise NoLoss(finding_id=finding["finding_id"], rule_id=finding["rule_id"])
    return str(finding["subject"]).partition("/")[0]


def events_of(
    finding: Mapping[str, Any],
    logs: Mapping[LogId, str],
    *,
    principal: str,
    reason: str,
    now_ms: int,
) -> Iterator[LossAccepted]:
    """For each log that the finding is about; `logs` are those that were judged, with their topics' names."""
    cluster_id, topic_id, *rest = str(finding["subject"]).split("/")
    ranges = finding["ranges"]
    for log, topic in sorted(logs.items()):
        if (log.cluster_id, log.topic_id) != (cluster_id, topic_id):
            continue
        if rest and log.partition != int(rest[0]):
            continue
        yield LossAccepted(
            event_id=str(uuid.uuid4()),
            occurred_at_ms=now_ms,
            log=log,
            topic=topic,
            leader_epoch=-1,
            start_offset=min((start for start, _ in ranges), default=0),
            end_offset=max((end for _, end in ranges), default=0),
            principal=principal,
            reason=reason,
            finding_id=finding["finding_id"],
        )
