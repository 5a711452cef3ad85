"""How far a replay came: records of a topic of the target's cluster, in the transactions that they speak of.

    topic  __seawall_restores, one partition, kept for ever
    key    <plan's hash>:<target's topic id>:<target's partition>
    value  {"version": 1, "next": source offset, "target_end": ..., "runs": [[source, target, count], ...]}

A record is there if and only if its transaction was committed: with it the records that it counts. `next` is
the first source offset that was not looked at yet. A topic that is made again has another id, and begins
anew.

Owns the form. Refuses what is not its own spelling.

Invariant: the last record of a key says where to go on; the runs of all of them are the offset map.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from backup.topic.encode import batch_of, payload_of
from backup.topic.offset_map import OffsetMap, Run, joined
from backup.topic.outgoing import Sender
from tiering.log.batch import TRANSACTIONAL, Record
from tiering.log.codec import Codec

PROGRESS_TOPIC = "__seawall_restores"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one transaction did."""

    next_offset: int  # of the source
    target_end: int  # behind the transaction's last record in the target; -1 if it had none
    runs: tuple[Run, ...]


def progress_key(plan_hash: str, topic_id: str, partition: int) -> bytes:
    return f"{plan_hash}:{topic_id}:{partition}".encode()


def encode_step(step: Step) -> bytes:
    written = {
        "next": step.next_offset,
        "runs": [list(run) for run in step.runs],
        "target_end": step.target_end,
        "version": VERSION,
    }
    return json.dumps(written, separators=(",", ":")).encode()


def decode_step(value: bytes) -> Step:
    """Raises ValueError."""
    found: dict[str, Any] = json.loads(value)
    if found.get("version") != VERSION:
        raise ValueError(f"version {found.get('version')!r} of a replay's progress is not known")
    return Step(
        next_offset=int(found["next"]),
        target_end=int(found["target_end"]),
        runs=tuple(Run(*map(int, run)) for run in found["runs"]),
    )


def step_batch(key: bytes, step: Step, now_ms: int, sender: Sender) -> bytearray:
    """The one record that says so, as it is sent."""
    record = Record(0, now_ms, key, encode_step(step), ())
    batch = batch_of(
        attributes=TRANSACTIONAL,
        records=1,
        base_timestamp_ms=now_ms,
        max_timestamp_ms=now_ms,
        producer_id=sender.producer_id,
        producer_epoch=sender.producer_epoch,
        base_sequence=sender.sequence,
        payload=[payload_of([record], Codec.NONE)],
    )
    sender.sequence += 1
    return batch


def map_of(steps: Iterable[Step], start: int) -> OffsetMap:
    """What all transactions of a replay that began at `start` come to."""
    listed = list(steps)
    ends = [each.target_end for each in listed if each.target_end >= 0]
    return OffsetMap(
        start=start,
        end=max((each.next_offset for each in listed), default=start),
        target_end=max(ends, default=0),
        runs=joined(run for each in listed for run in each.runs),
    )
