"""What a restore came to, as a file that can be held against its signature.

    {"seawall_restore": {...}, "sha256": "...", "signature": "v1,<base64>" | null}

The signature is HMAC-SHA256 over the one spelling of the report, by a key of this host or of the operator:
who has the key can tell that a report is Seawall's and unaltered. Without a key there is the hash alone.

Owns the form. Refuses a report that any byte was changed in.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backup.errors import BackupError
from backup.plan.values import LostBecause, Plan, Range
from backup.signing import is_signed, signature
from backup.tier.apply import Restoration
from rules.identity import ObjectRef
from tiering.segments.json_fields import canonical


@dataclass(kw_only=True, eq=False)
class ReportUnusable(BackupError):
    """{path} is no report of a restore that can be believed: {why}"""

    path: str
    why: str


def members_of(done: Restoration, principal: str) -> dict[str, Any]:
    """All that is told of a restore to the tier."""
    body = done.plan.body
    return {
        **_of_plan(done.plan, principal),
        "was_over": done.was_over,
        "objects_put_back": done.objects_put_back,
        "size_bytes": done.size_bytes,
        "ranges": [list(each) for each in done.ranges],
        "log_start": done.log_start,
        "generation": done.generation,
        "keep_until_ms": done.keep_until_ms,
        "objects": [_object(ref) for piece in body.pieces for _, ref in piece.record.objects.present()],
        "events": list(done.events),
        "started_at_ms": done.started_at_ms,
        "ended_at_ms": done.ended_at_ms,
    }


def members_of_other(
    plan: Plan, principal: str, *, whole: Range, started_at_ms: int, ended_at_ms: int, **details: Any
) -> dict[str, Any]:
    """All that is told of a restore to log dirs or to a topic; `details` are the target's own."""
    return {
        **_of_plan(plan, principal),
        "ranges": [list(whole)],
        "objects": [
            _object(ref) for piece in plan.body.pieces for ref in (piece.log_object, piece.aux_object)
        ],
        "started_at_ms": started_at_ms,
        "ended_at_ms": ended_at_ms,
        **details,
    }


def _of_plan(plan: Plan, principal: str) -> dict[str, Any]:
    body = plan.body
    return {
        "plan": plan.hash,
        "cluster_id": body.log.cluster_id,
        "topic_id": body.log.topic_id,
        "partition": body.log.partition,
        "topic": body.topic,
        "target": body.target.value,
        "principal": principal,
        "gaps": _gaps(plan),
        "restored_offsets": body.recoverable_offsets,
        "lost_offsets": body.lost_offsets,
    }


def _object(ref: ObjectRef) -> dict[str, Any]:
    return {
        "key": ref.key,
        "version_id": ref.version_id,
        "checksum": ref.checksum,
        "size_bytes": ref.size_bytes,
    }


def _gaps(plan: Plan) -> list[list[Any]]:
    because = (LostBecause.ON_RECORD,)
    return [
        [each.start, each.end, each.because.value] for each in plan.body.gaps if each.because not in because
    ]


def signed(members: Mapping[str, Any], key: bytes | None) -> str:
    """The whole file."""
    spelled = canonical(members)
    whole = {
        "seawall_restore": members,
        "sha256": hashlib.sha256(spelled).hexdigest(),
        "signature": None if key is None else signature(spelled, key),
    }
    return json.dumps(whole, indent=1) + "\n"


def checked(content: bytes, key: bytes | None, path: str) -> Mapping[str, Any]:
    """The report, if it is as it was written; with a key, if whoever wrote it had the same."""
    try:
        whole = json.loads(content)
        members = whole["seawall_restore"]
        told, told_signature = whole["sha256"], whole["signature"]
        spelled = canonical(members)
    except (ValueError, KeyError, TypeError):
        raise ReportUnusable(path=path, why="it has not the form of one") from None
    if hashlib.sha256(spelled).hexdigest() != told:
        raise ReportUnusable(path=path, why="it was changed since it was written")
    if key is not None and not is_signed(spelled, key, told_signature):
        raise ReportUnusable(path=path, why="its signature is not by this key")
    found: Mapping[str, Any] = members
    return found
