"""What readers found damaged, as events: the audit hears of it as if a scrub had found it.

A `scrubbed` event for each object whose bytes were wrong twice, by an emitter of this folder's own. The spool
opened for it, closed behind it with a heartbeat, so that an endpoint with nothing to say is no emitter that
falls silent.

Owns that thread. Refuses to hold up a client: what cannot be said is logged, and said with the next reader.
Invariant: one event an hour at most for a version of an object, and only while the topic's record names it.
"""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Thread
from typing import Any

from rules.events import Scrubbed, ScrubDepth, ScrubOutcome
from rules.identity import LogId
from seawall.settings import Settings
from seawall.tier.scrub import Evidence, evidence, state_folder
from tiering.reader.errors import ObjectDamaged
from tiering.scrub.damage import DETAIL_CHARS_MAX, Damage
from tiering.segments.records import ObjectRef, SegmentId, SegmentRecord, SegmentState
from tiering.serve.tier import TierTable

SORT = "serve"
AGAIN_MS = 3_600_000
WAITING_MAX = 1000
STOP_S = 40.0

OpenEvidence = Callable[[], AbstractContextManager[Evidence]]


class DamageSaid:
    """`open_evidence` gives a way to say it. Close it after the last reader."""

    def __init__(self, tier: TierTable, open_evidence: OpenEvidence, log: Any) -> None:
        self._tier = tier
        self._open = open_evidence
        self._log = log
        self._said_ms: dict[ObjectRef, int] = {}
        self._waiting: queue.Queue[ObjectDamaged | None] = queue.Queue(WAITING_MAX)
        self._thread = Thread(target=self._run, name="seawall-serve-evidence", daemon=True)
        self._thread.start()

    def tell(self, damaged: ObjectDamaged) -> None:
        """From any thread; returns at once. What finds no room is told again by the next reader."""
        try:
            self._waiting.put_nowait(damaged)
        except queue.Full:
            self._log.warning("damage_not_said", why="too many wait to be said")

    def close(self) -> None:
        self._waiting.put(None)
        self._thread.join(STOP_S)

    def _run(self) -> None:
        while (damaged := self._waiting.get()) is not None:
            try:
                self._say(damaged)
            except Exception as failed:  # noqa: BLE001 the worker's edge: the next one may be said
                self._log.warning("damage_not_said", why=str(failed))

    def _say(self, damaged: ObjectDamaged) -> None:
        event = scrubbed_of(damaged, self._tier, now_ms=_now_ms())
        ref = ObjectRef(damaged.key, 0, "", "", damaged.version_id)
        if event is None or _now_ms() - self._said_ms.get(ref, -AGAIN_MS) < AGAIN_MS:
            return
        with self._open() as kept:
            kept.emit_many([event])
            kept.close(lambda spool: spool.beat(event_id=str(uuid.uuid4()), occurred_at_ms=_now_ms()))
        self._said_ms = {at: ms for at, ms in self._said_ms.items() if _now_ms() - ms < AGAIN_MS}
        self._said_ms[ref] = _now_ms()


def damage_said(settings: Settings, tier: TierTable, environ: Mapping[str, str], log: Any) -> DamageSaid:
    """By the settings: the spool is in the folder that they name, or in the user's own state folder."""
    given = settings.serve.state_dir
    cluster_id = tier.cluster_id

    def opened() -> AbstractContextManager[Evidence]:
        folder = state_folder(None if given is None else Path(given), cluster_id, environ, SORT)
        return evidence(settings, folder, cluster_id, SORT)

    return DamageSaid(tier, opened, log)


def scrubbed_of(damaged: ObjectDamaged, tier: TierTable, *, now_ms: int) -> Scrubbed | None:
    """None where the topic's record does not name that version any more: what is gone may be anything."""
    log, segment_id = damaged.log, SegmentId(damaged.segment_id)
    record = tier.segment(log, segment_id)
    found = _named(record, damaged)
    if record is None or found is None:
        return None
    kind, ref = found
    return Scrubbed(
        event_id=str(uuid.uuid4()),
        occurred_at_ms=now_ms,
        log=log,
        topic=record.topic,
        leader_epoch=record.leader_epoch,
        segment_id=segment_id,
        base_offset=record.base_offset,
        end_offset=record.end_offset,
        object_key=ref.key,
        version_id=ref.version_id,
        size_bytes=ref.size_bytes,
        scrub_depth=ScrubDepth.DEEP,
        scrub_outcome=ScrubOutcome.FAILED,
        problem=(Damage.AUX if kind == "aux" else Damage.CHECKSUM).value,
        detail=f"found by a reader: {damaged.why}"[:DETAIL_CHARS_MAX],
        metadata_offset=_last_offset(tier, log),
    )


def _named(record: SegmentRecord | None, damaged: ObjectDamaged) -> tuple[str, ObjectRef] | None:
    if record is None or record.state is not SegmentState.COPY_FINISHED:
        return None
    same = (
        (kind, ref)
        for kind, ref in record.objects.present()
        if (ref.key, ref.version_id) == (damaged.key, damaged.version_id)
    )
    return next(same, None)


def _last_offset(tier: TierTable, log: LogId) -> int:
    return tier.position(log) - 1


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
