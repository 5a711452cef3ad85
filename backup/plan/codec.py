"""A plan's body as JSON, in one spelling, and its hash.

Segment records stand in it as the topic of metadata has them (`tiering.segments.codec`), seal included.

Owns the spelling. Refuses what is not exactly it: a name too many, one missing, another type.

Invariant: body_of(members_of(b)) == b, and equal bodies have equal hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from backup.plan.values import (
    Asked,
    AskedBy,
    Fingerprints,
    Lost,
    LostBecause,
    Origin,
    Piece,
    Plan,
    PlanBody,
    Range,
)
from rules.identity import LogId
from rules.words import RestoreTarget
from tiering.segments.codec import decode_segment, encode_segment
from tiering.segments.errors import RecordMalformed
from tiering.segments.json_fields import Fields, canonical, parse_object
from tiering.segments.records import INT32_MAX, Json

PLAN_VERSION = 1
WHAT = "a plan"

E = TypeVar("E", bound=Enum)


def plan_of(body: PlanBody) -> Plan:
    """The plan that says this. What does not hold in it is a defect of whoever made it."""
    problem = body.problem()
    assert problem is None, problem
    return Plan(hash=hash_of(body), body=body)


def hash_of(body: PlanBody) -> str:
    return hashlib.sha256(canonical(members_of(body))).hexdigest()


def members_of(body: PlanBody) -> dict[str, Json]:
    """What the file holds of it."""
    return {
        "version": PLAN_VERSION,
        "cluster_id": body.log.cluster_id,
        "topic_id": body.log.topic_id,
        "partition": body.log.partition,
        "topic": body.topic,
        "target": body.target.value,
        "made_at_ms": body.made_at_ms,
        "asked": {"by": body.asked.by.value, "text": body.asked.text, "range": list(body.asked.range)},
        "range": list(body.range),
        "joins_at": body.joins_at,
        "pieces": [_piece_members(each) for each in body.pieces],
        "lost": [
            {"range": [each.start, each.end], "because": each.because.value, "detail": each.detail}
            for each in body.lost
        ],
        "passes_gaps": body.passes_gaps,
        "keep_for_ms": body.keep_for_ms,
        "requests": body.requests,
        "estimated_ms": body.estimated_ms,
        "fingerprints": {
            "bucket": body.fingerprints.bucket,
            "log": body.fingerprints.log,
            "policy": body.fingerprints.policy,
        },
        "details": dict(body.details),
    }


def body_of(members: Mapping[str, Json]) -> PlanBody:
    """Raises RecordMalformed for anything but a plan's members."""
    fields = Fields(WHAT, members)
    if (version := fields.integer("version")) != PLAN_VERSION:
        raise fields.wrong(f"is of version {version}, and this Seawall knows {PLAN_VERSION}")
    asked, prints, details = fields.inner("asked"), fields.inner("fingerprints"), fields.inner("details")
    body = PlanBody(
        log=LogId(
            fields.text("cluster_id"), fields.text("topic_id"), fields.integer("partition", 0, INT32_MAX)
        ),
        topic=fields.text("topic"),
        target=_member(RestoreTarget, fields, "target"),
        made_at_ms=fields.integer("made_at_ms"),
        asked=Asked(by=_member(AskedBy, asked, "by"), text=asked.text("text"), range=_range(asked, "range")),
        range=_range(fields, "range"),
        joins_at=fields.integer("joins_at"),
        pieces=tuple(_piece(each) for each in fields.items("pieces")),
        lost=tuple(_lost(each) for each in fields.items("lost")),
        passes_gaps=fields.truth("passes_gaps"),
        keep_for_ms=fields.integer("keep_for_ms"),
        requests=fields.integer("requests"),
        estimated_ms=fields.integer("estimated_ms"),
        fingerprints=Fingerprints(
            bucket=prints.text("bucket"), log=prints.text("log"), policy=prints.text("policy")
        ),
        details=details.left(),
    )
    for each in (fields, asked, prints):
        if left := each.left():
            raise each.wrong(f"holds {', '.join(sorted(left))}, which nobody wrote")
    if problem := body.problem():
        raise fields.wrong(f"contradicts itself: {problem}")
    return body


def _piece_members(piece: Piece) -> dict[str, Json]:
    return {
        "range": [piece.start, piece.end],
        "origin": piece.origin.value,
        "record": parse_object(encode_segment(piece.record), "a segment's record"),
        "tops": dict(piece.tops),
        "broker_id": piece.broker_id,
    }


def _piece(members: Json) -> Piece:
    fields = Fields(f"{WHAT}, a piece", members)
    start, end = _range(fields, "range")
    tops = fields.inner("tops")
    origin, broker_id = _member(Origin, fields, "origin"), fields.optional_integer("broker_id")
    record = decode_segment(canonical(fields.inner("record").left()), f"{WHAT}, the record of a segment")
    if left := fields.left():
        raise fields.wrong(f"holds {', '.join(sorted(left))}, which nobody wrote")
    return Piece(
        start=start,
        end=end,
        origin=origin,
        record=record,
        tops=tuple(sorted((kind, tops.optional_text(kind)) for kind in list(tops.left()))),
        broker_id=broker_id,
    )


def _lost(members: Json) -> Lost:
    fields = Fields(f"{WHAT}, a lost range", members)
    start, end = _range(fields, "range")
    found = Lost(
        start=start,
        end=end,
        because=_member(LostBecause, fields, "because"),
        detail=fields.text("detail"),
    )
    if left := fields.left():
        raise fields.wrong(f"holds {', '.join(sorted(left))}, which nobody wrote")
    return found


def _range(fields: Fields, name: str) -> Range:
    found = fields.items(name)
    if len(found) != 2 or any(type(each) is not int or each < 0 for each in found):
        raise fields.wrong(f"{name} is no range")
    return Range(*found)


def _member(kind: type[E], fields: Fields, name: str) -> E:
    value = fields.text(name)
    try:
        return kind(value)
    except ValueError:
        raise RecordMalformed(what=WHAT, why=f"{name} is {value[:60]!r}") from None
