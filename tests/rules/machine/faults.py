"""The seventeen faults of RULES.md, each on the fixtures where it can occur, with exactly what must be found.

Where a fault's line in RULES.md and the catalogue disagree, the catalogue's meaning wins: docs/decisions/0014
says where.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rules.events import Inventory, TopicDeleted
from rules.events.base import Source
from tests.rules.machine.histories import DAY_MS, HOUR_MS, MIB, T0_MS, History, fixture, newest, segment

Found = tuple[str, str, tuple[tuple[int, int], ...]]
LOSS = ("START-02", "C", ((0, 3000),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`make` gives the history; `found` is every finding of it; `parents` the cause of each rule's."""

    number: int
    mode: str
    make: Callable[[str], History]
    found: frozenset[Found]
    parents: Mapping[str, str | None] = field(default_factory=dict)
    recoverable: int | None = None
    open_at_end: frozenset[str] | None = None

    @property
    def name(self) -> str:
        return f"fault {self.number} {self.mode}"


def _local(mode: str, start: int) -> int | None:
    return start if mode == "none" else None


def trimmed_prefix(mode: str, *, versioned: bool = False) -> History:
    h = fixture(mode, versioned=versioned)
    h.syncs(2, 3)
    h.elects(2, (2, 3))
    h.after(minutes=1).restarted(1, clean=True)
    h.start(1, 0, 3000, local=_local(mode, 3000))
    h.after(seconds=20).syncs(1, 2, 3)
    h.after(minutes=30).elects(1)
    for broker in (2, 3):
        h.after(seconds=5).start(broker, 0, 3000, local=_local(mode, 3000))
    if mode == "none":
        for broker in (1, 2, 3):
            for index in range(3):
                _, base, end, newest_ms = segment(index)
                h.dropped(broker, base, end, newest_ms)
    return h.after(hours=2)


def trimmed_and_the_tier_follows(mode: str, *, versioned: bool = False) -> History:
    h = trimmed_prefix(mode, versioned=versioned)
    for index in range(3):
        h.expunged(*segment(index)[:3])
    return h.after(hours=1)


def trimmed_inside_a_segment(mode: str) -> History:
    h = fixture(mode)
    h.after(minutes=1).start(1, 0, 2500)
    for broker in (2, 3):
        h.after(seconds=5).start(broker, 0, 2500)
    return h.after(hours=2)


def _tables(h: History, odd: int | None, *, offset: int) -> None:
    for broker in (1, 2, 3):
        h.after(seconds=1).table(broker, "odd" if broker == odd else "same", offset)


def table_lacks_a_segment(mode: str) -> History:
    h = fixture(mode)
    offset = h.tier_offset
    _tables(h, 2, offset=offset)
    h.after(minutes=1)
    everything = {f"s{index}": f"content {index}" for index in range(10)}
    for broker in (1, 2, 3):
        held = {key: each for key, each in everything.items() if broker != 2 or key != "s4"}
        h.table_set(broker, held, offset)
    h.after(minutes=10)
    return h


def table_lacks_a_segment_and_leads(mode: str) -> History:
    h = table_lacks_a_segment(mode)
    h.elects(2)
    return h.after(hours=2)


def two_contents(mode: str) -> History:
    h = fixture(mode)
    offset = h.tier_offset
    _tables(h, 3, offset=offset)
    everything = {f"s{index}": f"content {index}" for index in range(10)}
    for broker in (1, 2, 3):
        h.table_set(broker, {**everything, "s4": "another"} if broker == 3 else everything, offset)
    return h.after(hours=1)


def lagging_table(mode: str) -> History:
    h = fixture(mode)
    offset = h.tier_offset
    for broker in (1, 3):
        h.after(seconds=1).table(broker, "same", offset)
    h.after(seconds=90).table(2, "same", offset)
    return h.after(hours=1)


def _expire_all(h: History, mode: str) -> None:
    h.after(minutes=3)
    if mode == "kip405":
        h.start(1, 0, 9000)
        for broker in (2, 3):
            h.after(seconds=2).start(broker, 0, 9000)
        for index in range(9):
            h.after(seconds=1).expunged(*segment(index)[:3])
        return
    for broker in (1, 2, 3):
        h.after(seconds=20)
        for index in range(9):
            _, base, end, newest_ms = segment(index)
            h.dropped(broker, base, end, newest_ms)
        h.start(broker, 0, 9000, local=9000)


def retention_shrunk(mode: str) -> History:
    h = fixture(mode)
    h.config("retention.ms", str(HOUR_MS), str(7 * DAY_MS))
    _expire_all(h, mode)
    return h.after(hours=3)


def retention_shrunk_as_declared(mode: str) -> History:
    h = fixture(mode)
    h.declares("CHG-1", total_retention_ms='"1h"')
    h.after(minutes=1).config("retention.ms", str(HOUR_MS), str(7 * DAY_MS))
    _expire_all(h, mode)
    return h.after(minutes=7)


def retention_flaps(mode: str) -> History:
    h = fixture(mode)
    usual = HOUR_MS if mode == "ours" else 7 * DAY_MS
    h.config("retention.ms", str(usual // 60), str(usual))
    h.after(minutes=10).config("retention.ms", str(usual), str(usual // 60))
    return h.after(hours=2)


def counted_twice(mode: str) -> History:
    keeps = {
        "total_retention_ms": '"7d"',
        "total_retention_bytes": '"15MiB"',
        "local_retention_ms": '"1h"',
        "local_retention_bytes": '"15MiB"',
        "declare_grace_ms": '"1h"',
    }
    h = fixture(mode, local_from=0, declared=keeps)
    h.config("retention.bytes", str(15 * MIB), "-1")
    h.after(minutes=5).elects(2)
    h.after(minutes=1).start(2, 0, 5000, local=0)
    for broker in (1, 3):
        h.after(seconds=3).start(broker, 0, 5000, local=0)
    for index in range(5):
        h.after(seconds=1).expunged(*segment(index)[:3])
    for broker in (1, 2, 3):
        for index in range(5):
            _, base, end, newest_ms = segment(index)
            h.dropped(broker, base, end, newest_ms)
    return h.after(hours=2)


def start_behind_overlaps(mode: str) -> History:
    keeps = {"total_retention_ms": '"8h"', "local_retention_ms": '"1h"'}
    h = fixture(mode, declared=keeps, retention_ms=8 * HOUR_MS, expire_together=3)
    h.copied("s1-again", 1000, 2000, newest(2))
    h.after(minutes=10)
    h.start(1, 0, 2000)
    for broker in (2, 3):
        h.after(seconds=3).start(broker, 0, 2000)
    for index in range(3):
        h.expunged(*segment(index)[:3])
    h.expunged("s1-again", 1000, 2000)
    return h.after(minutes=15)


def start_above_the_watermark(mode: str) -> History:
    h = fixture(mode)
    h.start(3, 0, 10_600, watermark=10_500)
    h.after(minutes=20).watermark(3, 10_500, start=10_600, size_bytes=MIB)
    h.after(minutes=1).start(3, 10_600, 0, watermark=10_500)
    return h.after(hours=1)


def dropped_before_its_upload(mode: str, *, leaderless_after: int | None = None) -> History:
    h = fixture(mode)
    h.told = [each for each in h.told if getattr(each.event, "segment_id", None) != "s9"]
    _renumber(h)
    h.copy_started(*segment(9))
    h.after(minutes=5)
    if leaderless_after is not None:
        h.elects(leaderless_after)
        h.after(seconds=2).elects(-1)
        h.after(seconds=2)
    h.dropped(1, 9000, 10_000, newest(9))
    h.start(1, 9000, 10_000, local=10_000)
    for broker in (2, 3):  # the leader's start is a floor for theirs; the files are there still
        h.after(seconds=2).start(broker, 9000, 10_000, local=9000)
    return h.after(hours=2)


def _renumber(h: History) -> None:
    """As if what was left out had never been said."""
    from dataclasses import replace

    h.seqs.clear()
    h.log_seqs.clear()
    told = []
    for each in h.told:
        log_seq = None
        if each.log_seq is not None:
            log_seq = h.log_seqs[each.speaker]
            h.log_seqs[each.speaker] += 1
        told.append(replace(each, seq=h.seqs[each.speaker], log_seq=log_seq))
        h.seqs[each.speaker] += 1
    h.told = told


def objects_removed(mode: str) -> History:
    h = fixture(mode)
    for _ in range(2):
        h.after(minutes=15).say(
            Inventory,
            component="scrub",
            object_count=8,
            size_bytes=8 * MIB,
            listing_digest="0" * 64,
            missing_keys=(),
            deleted_keys=("c1/T1/0/00000000000000002000-s2.log", "c1/T1/0/00000000000000003000-s3.log"),
            unknown_keys=(),
            differences_left_out=0,
            metadata_offset=h.tier_offset,
        )
    return h.after(hours=1)


def topic_removed(mode: str) -> History:
    h = fixture(mode)
    h.kraft_offset += 1
    h.say(
        TopicDeleted,
        component="metadata",
        topic_id="T1",
        topic="orders",
        source=Source.KRAFT,
        metadata_offset=h.kraft_offset,
        is_coalesced=False,
        not_before_ms=None,
    )
    return h.after(hours=1)


def middle_vanishes(mode: str) -> History:
    from rules.events import SegmentRemoval

    h = fixture(mode, local_from=0 if mode == "none" else 8000)
    if mode == "ours":
        h.told = [each for each in h.told if getattr(each.event, "segment_id", None) != "s9"]
        _renumber(h)
    h.restarted(1, clean=True)
    _, base, end, newest_ms = segment(9 if mode == "ours" else 4)
    h.dropped(1, base, end, newest_ms, how=SegmentRemoval.GONE)
    return h.after(hours=1)


def corrupt_follower(mode: str) -> History:
    """Not yet elected."""
    h = fixture(mode)
    h.restarted(3, clean=True)
    old, new = (9000, 10_200) if mode == "ours" else (0, 4000)
    h.start(3, old, new, local=None)
    return h.after(minutes=30)


def corrupt_follower_elected(mode: str) -> History:
    h = corrupt_follower(mode)
    old, new = (9000, 10_200) if mode == "ours" else (0, 4000)
    h.elects(3)
    for broker in (2, 1):
        h.after(seconds=2).start(broker, old, new, local=None)
    return h.after(hours=2)


def _each(rule_id: str, *indexes: int) -> set[Found]:
    return {(rule_id, "C", ((index * 1000, index * 1000 + 1000),)) for index in indexes}


FAULTS: tuple[Fault, ...] = (
    *(
        Fault(
            number=1,
            mode=mode,
            make=trimmed_prefix,
            found=frozenset({LOSS, ("START-04", "C", ((0, 3000),))}),
            parents={"START-02": None, "START-04": "START-02"},
            recoverable=3000 if mode == "kip405" else 0,
            open_at_end=frozenset({"START-02"}),
        )
        for mode in ("kip405", "none")
    ),
    Fault(
        number=2,
        mode="kip405",
        make=trimmed_and_the_tier_follows,
        found=frozenset({LOSS, ("START-04", "C", ((0, 3000),)), *_each("DEL-01", 0, 1, 2)}),
        parents={"START-02": None, "DEL-01": "START-02"},
    ),
    Fault(
        number=3,
        mode="kip405",
        make=trimmed_inside_a_segment,
        found=frozenset({("START-02", "C", ((0, 2500),)), ("START-05", "E", ((2500, 2501),))}),
        parents={"START-02": None, "START-05": "START-02"},
    ),
    Fault(
        number=4,
        mode="ours",
        make=table_lacks_a_segment,
        found=frozenset({("META-01", "E", ((4000, 5000),))}),
    ),
    Fault(
        number=4,
        mode="ours",
        make=table_lacks_a_segment_and_leads,
        found=frozenset({("META-01", "C", ((4000, 5000),)), ("SEG-02", "C", ((4000, 5000),))}),
        parents={"META-01": None, "SEG-02": "META-01"},
    ),
    Fault(
        number=5,
        mode="ours",
        make=two_contents,
        found=frozenset({("META-02", "C", ((4000, 5000),)), ("META-01", "E", ())}),
        parents={"META-02": None, "META-01": "META-02"},
    ),
    Fault(number=6, mode="ours", make=lagging_table, found=frozenset()),
    *(
        Fault(
            number=7,
            mode=mode,
            make=retention_shrunk,
            found=frozenset(
                {("RET-03", "C", ()), ("START-02", "C", ((0, 9000),)), *_each("RET-01", *range(9))}
            ),
            parents={"RET-03": None, "START-02": "RET-03", "RET-01": "START-02"},
        )
        for mode in ("kip405", "none")
    ),
    *(
        Fault(
            number=8,
            mode=mode,
            make=retention_shrunk_as_declared,
            found=frozenset({("RET-04", "W", ((0, 9000),))}),
        )
        for mode in ("kip405", "none")
    ),
    *(
        Fault(
            number=9,
            mode=mode,
            make=retention_flaps,
            found=frozenset({("RET-03", "E", ())}),
            open_at_end=frozenset(),
        )
        for mode in ("kip405", "ours", "none")
    ),
    Fault(
        number=10,
        mode="kip405",
        make=counted_twice,
        found=frozenset({("START-02", "C", ((0, 5000),)), *_each("RET-02", *range(5))}),
        parents={"START-02": None, "RET-02": "START-02"},
    ),
    Fault(
        number=11,
        mode="kip405",
        make=start_behind_overlaps,
        found=frozenset({("SEG-03", "W", ((1000, 2000),)), ("START-06", "C", ((2000, 3000),))}),
        parents={"SEG-03": None, "START-06": None},
    ),
    Fault(
        number=12,
        mode="kip405",
        make=start_above_the_watermark,
        found=frozenset(
            {
                ("START-03", "C", ((10_500, 10_600),)),
                ("START-04", "C", ((0, 10_600),)),
                ("START-01", "C", ((0, 10_600),)),
            }
        ),
        parents={"START-03": None, "START-04": "START-03", "START-01": "START-03"},
        open_at_end=frozenset({"START-01"}),
    ),
    Fault(
        number=13,
        mode="ours",
        make=dropped_before_its_upload,
        found=frozenset(
            {
                ("START-02", "C", ((9000, 10_000),)),
                ("SEG-09", "C", ((9000, 10_000),)),
                ("SEG-02", "C", ((9000, 10_000),)),
                ("SEG-11", "W", ((9000, 10_000),)),
            }
        ),
        parents={"START-02": None, "SEG-09": "START-02", "SEG-02": "START-02", "SEG-11": "START-02"},
    ),
    Fault(
        number=14,
        mode="ours",
        make=objects_removed,
        found=frozenset({*_each("OPS-03", 2, 3), *_each("SEG-06", 2, 3)}),
        parents={"OPS-03": None, "SEG-06": "OPS-03"},
    ),
    *(
        Fault(
            number=15,
            mode=mode,
            make=topic_removed,
            found=frozenset({("OPS-01", "C", ((0, 10_500),))}),
            recoverable=0 if mode == "none" else 10_000,
        )
        for mode in ("kip405", "ours", "none")
    ),
    Fault(
        number=16,
        mode="none",
        make=middle_vanishes,
        found=frozenset({("SEG-02", "C", ((4000, 5000),))}),
        parents={"SEG-02": None},
    ),
    Fault(
        number=16,
        mode="ours",
        make=middle_vanishes,
        found=frozenset({("SEG-02", "C", ((9000, 10_000),))}),
        parents={"SEG-02": None},
    ),
    Fault(
        number=17,
        mode="none",
        make=corrupt_follower,
        found=frozenset({("START-04", "C", ((0, 4000),))}),
    ),
    Fault(
        number=17,
        mode="ours",
        make=corrupt_follower,
        found=frozenset({("START-04", "C", ((10_000, 10_200),))}),
    ),
    Fault(
        number=17,
        mode="none",
        make=corrupt_follower_elected,
        found=frozenset({("START-04", "C", ((0, 4000),)), ("START-02", "C", ((0, 4000),))}),
        parents={"START-02": None, "START-04": "START-02"},
        open_at_end=frozenset({"START-02"}),
    ),
    Fault(
        number=17,
        mode="ours",
        make=corrupt_follower_elected,
        found=frozenset({("START-04", "C", ((10_000, 10_200),)), ("START-02", "C", ((10_000, 10_200),))}),
        parents={"START-02": None, "START-04": "START-02"},
    ),
)
T0 = T0_MS
