"""Damage that readers find is said to the audit: once an hour a version, and only of what is on record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from rules.events import Event, Scrubbed, ScrubOutcome
from seawall.local.waiting import becomes_true
from seawall.serve.evidence import DamageSaid, scrubbed_of
from seawall.tier.scrub import Evidence
from tests.tiering.segments.strategies import LOG
from tests.tiering.segments.topic import TOPIC
from tests.tiering.serve.scene import a_log
from tests.tiering.serve.test_seam import tiered
from tiering.reader.errors import ObjectDamaged
from tiering.serve.tier import TierTable


class Kept:
    """An Evidence that keeps what it is given."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.opened = 0
        self.fails = False

    def emit_many(self, events: Sequence[Event]) -> None:
        self.events += events

    def close(self, _: object) -> int:
        return 0

    @contextmanager
    def open(self) -> Iterator[Evidence]:
        self.opened += 1
        if self.fails:
            raise OSError("not now")
        yield cast("Evidence", self)


class Lines:
    def __init__(self) -> None:
        self.warned: list[str] = []

    def warning(self, event: str, **_: Any) -> None:
        self.warned.append(event)


def damaged_log() -> tuple[TierTable, ObjectDamaged]:
    """A table of one segment, and what a reader would say of its `.log`."""
    log = a_log(4)
    tier = tiered(log, 0, 4)
    table = TierTable(tier.table, TOPIC.cluster_id)
    [piece] = tier.log.coverage.pieces(0, 8)
    segment_id = cast("Any", piece).segment_id
    ref = tier.ref(segment_id)
    error = ObjectDamaged(
        log=LOG,
        segment_id=segment_id,
        key=ref.key,
        version_id=ref.version_id,
        position=61,
        why="the CRC does not fit",
    )
    return table, error


def test_it_is_said_once_and_a_failure_to_say_it_is_tried_with_the_next() -> None:
    """As a look that failed, with the object, its version and where the metadata stood."""
    table, error = damaged_log()
    kept, lines = Kept(), Lines()
    kept.fails = True
    said = DamageSaid(table, kept.open, lines)
    said.tell(error)
    assert becomes_true(lambda: lines.warned == ["damage_not_said"], deadline_s=20)
    kept.fails = False
    for _ in range(5):
        said.tell(error)
    said.close()

    [event] = kept.events
    assert isinstance(event, Scrubbed)
    assert (event.object_key, event.version_id) == (error.key, error.version_id)
    assert event.scrub_outcome is ScrubOutcome.FAILED
    assert event.problem == "checksum"
    assert event.metadata_offset == table.position(LOG) - 1
    assert kept.opened == 2


def test_what_is_not_on_record_any_more_is_not_said() -> None:
    """Another version, or another segment: what a reader met there may be anything."""
    table, error = damaged_log()
    error.version_id = "another"
    assert scrubbed_of(error, table, now_ms=1) is None
    error.segment_id = "00000000-0000-0000-0000-000000000000"
    assert scrubbed_of(error, table, now_ms=1) is None
