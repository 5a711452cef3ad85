"""What coordinator and workers say to each other, as values and as JSON, versioned.

    kind        "task", "answer" or "hail"
    version     in which it was written
    min_reader  the least version of a reader that understands it

| topic | record | key | value |
|---|---|---|---|
| tasks | Task | segment_id | run, depth, bucket, live, until_ms, bytes_per_s, record |
| answers | Answer | segment_id | run, segment_id, worker, read_bytes, no_answer, refused, objects |
| answers | Hail | worker | worker, threads |

`record` is the segment's, letter for letter as the topic of metadata has it, its seal with it. A task carries
the run in its header HEADER as well: who cannot read the value can still say so.

Owns this spelling. Refuses what it does not know whole: a task is done as it was meant or not at all, and an
answer that says "verified" of three objects says nothing else.

Invariant: decode(encode(w)) == w.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, TypeVar

from rules.words import ScrubDepth
from tiering.outcome import Failed, Inconclusive, Outcome, Problem, Verified
from tiering.scrub.damage import DETAIL_CHARS_MAX, PROBLEMS_TOLD_MAX, Reason
from tiering.segments.codec import decode_segment, encode_segment
from tiering.segments.errors import RecordTooNew
from tiering.segments.json_fields import Fields, canonical, parse_object
from tiering.segments.records import INT64_MAX, Json, SegmentId, SegmentRecord
from tiering.store.keys import ObjectKind

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

VERSION = 1
HEADER = "seawall-scrub-run"
THREADS_MAX = 1024
OBJECTS_MAX = len(ObjectKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Look at this segment. `until_ms`, of the wall clock: nobody waits for it after that.

    `bucket`: a worker that is set to another one would find everything missing. `live`: objects that a
    listing just now had as the record has them. `bytes_per_s`: the look's share of the run's rate; None: no
    limit.
    """

    run: str
    record: SegmentRecord
    depth: ScrubDepth
    bucket: str
    live: frozenset[ObjectKind]
    until_ms: int
    bytes_per_s: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one object came to."""

    kind: ObjectKind
    outcome: Outcome
    reason: Reason | None = None
    looks: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """To one task. `refused` says why it was not looked at; then there are no `objects`."""

    run: str
    segment_id: SegmentId
    worker: str
    read_bytes: int = 0
    no_answer: bool = False
    objects: tuple[Seen, ...] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hail:
    """A worker that is in its group and has partitions of the tasks."""

    worker: str
    threads: int


Word: TypeAlias = Answer | Hail


def encode_task(task: Task) -> bytes:
    return _spoken(
        "task",
        {
            "run": task.run,
            "depth": task.depth.value,
            "bucket": task.bucket,
            "live": sorted(each.value for each in task.live),
            "until_ms": task.until_ms,
            "bytes_per_s": task.bytes_per_s,
            "record": encode_segment(task.record).decode("ascii"),
        },
    )


def decode_task(value: bytes, what: str) -> Task:
    """Raises SegmentMetadataError."""
    fields = _heard(value, what, "task")
    found = Task(
        run=fields.text("run"),
        record=decode_segment(fields.text("record").encode(), f"{what}, record"),
        depth=_one_of(fields, ScrubDepth, fields.text("depth"), "depth"),
        bucket=fields.text("bucket"),
        live=frozenset(_one_of(fields, ObjectKind, each, "live") for each in fields.items("live")),
        until_ms=fields.integer("until_ms"),
        bytes_per_s=fields.optional_integer("bytes_per_s", minimum=1),
    )
    return _whole(fields, found)


def encode_word(word: Word) -> bytes:
    if isinstance(word, Hail):
        return _spoken("hail", {"worker": word.worker, "threads": word.threads})
    return _spoken(
        "answer",
        {
            "run": word.run,
            "segment_id": word.segment_id,
            "worker": word.worker,
            "read_bytes": word.read_bytes,
            "no_answer": word.no_answer,
            "refused": word.refused,
            "objects": [_seen_members(each) for each in word.objects],
        },
    )


def decode_word(value: bytes, what: str) -> Word:
    """Raises SegmentMetadataError."""
    fields = Fields(what, parse_object(value, what))
    kind = fields.text("kind")
    _check_version(fields, what)
    if kind == "hail":
        hail = Hail(worker=fields.text("worker"), threads=fields.integer("threads", 1, THREADS_MAX))
        return _whole(fields, hail)
    if kind != "answer":
        raise fields.wrong(f"is a {kind[:40]!r}, neither an answer nor a hail")
    objects = fields.items("objects")
    if len(objects) > OBJECTS_MAX:
        raise fields.wrong(f"is of {len(objects)} objects")
    answer = Answer(
        run=fields.text("run"),
        segment_id=SegmentId(fields.text("segment_id")),
        worker=fields.text("worker"),
        read_bytes=fields.integer("read_bytes"),
        no_answer=fields.truth("no_answer"),
        refused=fields.optional_text("refused"),
        objects=tuple(_seen(Fields(f"{what}, objects", each)) for each in objects),
    )
    return _whole(fields, answer)


def _seen_members(seen: Seen) -> dict[str, Json]:
    outcome = seen.outcome
    said: dict[str, Json] = {}
    match outcome:
        case Verified():
            said = {"outcome": "verified"}
        case Failed(problems):
            told = problems[:PROBLEMS_TOLD_MAX]
            said = {"outcome": "failed", "problems": [_problem_members(each) for each in told]}
        case Inconclusive(why):
            said = {"outcome": "inconclusive", "why": why[:DETAIL_CHARS_MAX]}
        case _:
            raise AssertionError(f"a look does not come to {outcome}")
    reason = None if seen.reason is None else seen.reason.value
    return {"kind": seen.kind.value, "reason": reason, "looks": seen.looks, **said}


def _seen(fields: Fields) -> Seen:
    kind = _one_of(fields, ObjectKind, fields.text("kind"), "kind")
    reason = fields.optional_text("reason")
    looks = fields.integer("looks", 0, 2)
    said = fields.text("outcome")
    outcome: Outcome
    if said == "verified":
        outcome = Verified()
    elif said == "failed":
        problems = [_problem(Fields("a problem", each)) for each in fields.items("problems")]
        if not problems:
            raise fields.wrong("failed, and says not in what")
        outcome = Failed(tuple(problems))
    elif said == "inconclusive":
        outcome = Inconclusive(fields.text("why"))
    else:
        raise fields.wrong(f"its outcome is {said[:40]!r}")
    known = None if reason is None else _one_of(fields, Reason, reason, "reason")
    return _whole(fields, Seen(kind=kind, outcome=outcome, reason=known, looks=looks))


def _problem_members(problem: Problem) -> dict[str, Json]:
    return {
        "kind": problem.kind,
        "detail": problem.detail[:DETAIL_CHARS_MAX],
        "position": problem.position,
        "offset": problem.offset,
    }


def _problem(fields: Fields) -> Problem:
    found = Problem(
        kind=fields.text("kind"),
        detail=fields.text("detail"),
        position=fields.optional_integer("position", minimum=-INT64_MAX),
        offset=fields.optional_integer("offset", minimum=-INT64_MAX - 1),  # as broken bytes may have it
    )
    return _whole(fields, found)


def _spoken(kind: str, members: dict[str, Json]) -> bytes:
    return canonical({"kind": kind, "version": VERSION, "min_reader": VERSION, **members})


def _heard(value: bytes, what: str, kind: str) -> Fields:
    fields = Fields(what, parse_object(value, what))
    if (found := fields.text("kind")) != kind:
        raise fields.wrong(f"is a {found[:40]!r}, and no {kind}")
    _check_version(fields, what)
    return fields


def _check_version(fields: Fields, what: str) -> None:
    version, least = fields.integer("version", 1), fields.integer("min_reader", 1)
    if least > VERSION:
        raise RecordTooNew(what=what, version=version, min_reader=least, supported=VERSION)


def _whole(fields: Fields, found: T) -> T:
    if left := fields.left():
        raise fields.wrong(f"says {', '.join(sorted(left))[:80]}, which this version does not know")
    return found


def _one_of(fields: Fields, kind: type[E], value: Json, name: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise fields.wrong(f"{name} is {str(value)[:40]!r}, which is none") from None
