"""Random histories of a tier: copies, scrubs, listings, tables, holds and restores, by seed.

One log beside a stock broker, its segments of ten offsets all in our tier. Steps lie twenty minutes apart, so
that each grace but a copy's deadline is over by the next. What a step does may be right or wrong: nobody here
knows, the judges tell. `random_days` has what happens to the log itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from rules.events import (
    CopyFailed,
    CopyFinished,
    CopyStarted,
    DeleteFinished,
    DeleteStarted,
    Inventory,
    ReplicaAppearance,
    RestoreTarget,
    ScrubDepth,
    ScrubOutcome,
)
from tests.rules.machine import acts
from tests.rules.machine.histories import BROKERS, DAY_MS, HOUR_MS, MINUTE_MS, T0_MS, History

STEP_MS = 20 * MINUTE_MS
SEGMENT = 10
SIZE = 1_000
SEGMENTS = 6
WATERMARK = SEGMENT * SEGMENTS
OBJECTS = ("log", "aux")


def key_of(segment_id: str, base: int, sort: str = "log") -> str:
    return f"p/{base:020d}-{segment_id}.{sort}"


class Tiers:
    """One history in the making. `spans` are the copies that were ever told of."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.h = History(mode="ours", now_ms=T0_MS - HOUR_MS)
        self.spans: dict[str, tuple[int, int]] = {}
        self.generations: dict[str, int] = {}
        self.holds: dict[str, bool] = {}  # and whether it stands
        self.starts = dict.fromkeys(BROKERS, 0)
        self.strangers = 0
        self._begin()

    def _begin(self) -> None:
        h = self.h
        keeps = {"total_retention_ms": '"7d"', "local_retention_ms": '"7d"'}
        h.declares("CHG-0", **keeps, tiering="true", scrub_interval_ms='"70min"')
        h.config("retention.ms", str(7 * DAY_MS), first=True)
        h.leadership()
        for broker in BROKERS:
            h.started(broker, start=0, local=0, watermark=WATERMARK, how=ReplicaAppearance.FIRST_SEEN)
            h.baseline(broker, start=0, local=0, watermark=WATERMARK, size_bytes=6 * SIZE, periodic=False)
            for base in range(0, WATERMARK, SEGMENT):
                h.closed(broker, base, base + SEGMENT, h.now_ms - HOUR_MS, SIZE)
        for index in range(SEGMENTS):
            self._copy(f"s{index}", index * SEGMENT)
        self._next()

    def _next(self) -> None:
        passed = (self.h.now_ms - T0_MS) // STEP_MS + 1
        self.h.now_ms = T0_MS + passed * STEP_MS

    def _copy(self, segment_id: str, base: int, **own: Any) -> None:
        self.spans[segment_id] = base, base + SEGMENT
        self.step(CopyStarted, segment_id)
        self.step(CopyFinished, segment_id, **own)

    def step(self, kind: Any, segment_id: str, **own: Any) -> None:
        base, end = self.spans[segment_id]
        fields: dict[str, Any] = {"generation": self.generations.get(segment_id, 0)}
        if kind in (CopyStarted, CopyFinished):
            fields |= {"data_end": end, "record_count": end - base, "size_bytes": SIZE}
            fields["max_timestamp_ms"] = self.h.now_ms - HOUR_MS
            fields |= {"objects": ()} if kind is CopyFinished else {}
        else:
            fields["cause"] = None
        self.h.tier(kind, segment_id, base, end, **{**fields, **own})

    def _any(self) -> str:
        return self.rng.choice(sorted(self.spans))

    # --- what a step may be

    def told_again(self) -> None:
        """The step that a copy is at, or any other."""
        kinds = (CopyStarted, CopyFinished, CopyFinished, DeleteStarted, DeleteFinished)
        self.step(self.rng.choice(kinds), self._any())

    def goes(self) -> None:
        segment_id = self._any()
        self.step(DeleteStarted, segment_id)
        if self.rng.random() < 0.7:
            self.step(DeleteFinished, segment_id)

    def stranger_goes(self) -> None:
        self.strangers += 1
        name = f"x{self.strangers}"
        base = SEGMENT * self.rng.randrange(SEGMENTS)
        self.h.tier(DeleteStarted, name, base, base + SEGMENT, cause=None)

    def impossible(self) -> None:
        name = f"odd{len(self.spans)}"
        base = SEGMENT * self.rng.randrange(SEGMENTS)
        epoch = self.h.epoch
        odd: tuple[dict[str, Any], ...] = (
            {"record_count": SEGMENT + 1},
            {"data_end": base + SEGMENT + 1},
            {"data_end": base - 1},
            {"max_timestamp_ms": -2},
            {"epochs": ((epoch + 1, base),)},
            {"epochs": ((epoch - 1, base), (epoch - 1, base + 5))},
            {"epochs": ((epoch - 1, base), (epoch, base + SEGMENT))},
            {"epochs": ((epoch - 1, base), (epoch, base + 5))},
            {},
        )
        self._copy(name, base, **self.rng.choice(odd))

    def early(self) -> None:
        """Of what is not committed, or of the last that is."""
        name = f"early{len(self.spans)}"
        self._copy(name, self.rng.choice((WATERMARK, WATERMARK - SEGMENT)))

    def hangs(self) -> None:
        name = f"slow{len(self.spans)}"
        base = SEGMENT * self.rng.randrange(SEGMENTS)
        self.spans[name] = base, base + SEGMENT
        self.step(CopyStarted, name)

    def fails(self) -> None:
        segment_id = self._any()
        base, end = self.spans[segment_id]
        self.h.say(
            CopyFailed,
            segment_id=segment_id,
            base_offset=base,
            end_offset=end,
            error="StoreFailed",
            detail="",
            attempt=1,
            leftovers=(),
        )

    def _looked_at(self) -> str:
        """Few enough that one is looked at again."""
        return self.rng.choice(sorted(self.spans)[:4])

    def scrubbed(self) -> None:
        segment_id = self._looked_at()
        base, end = self.spans[segment_id]
        outcome = self.rng.choice((ScrubOutcome.FAILED, ScrubOutcome.FAILED, *ScrubOutcome))
        problem = None
        if outcome is ScrubOutcome.FAILED:
            problem = self.rng.choice(("missing", "missing", "deleted", "crc"))
        if outcome is ScrubOutcome.INCONCLUSIVE:
            problem = "store_error"
        for _ in range(self.rng.randint(1, 2)):
            acts.scrubs(
                self.h,
                (segment_id, base, end),
                key_of(segment_id, base, self.rng.choice(OBJECTS)),
                depth=self.rng.choice((*ScrubDepth,)),
                outcome=outcome,
                problem=problem,
                size_bytes=SIZE,
            )

    def read_through(self) -> None:
        """Every copy that was ever told of, but for one or two at times."""
        left_out = {self._any(), self._any()} if self.rng.random() < 0.6 else set()
        for segment_id in sorted({*self.spans} - left_out):
            base, end = self.spans[segment_id]
            acts.scrubs(self.h, (segment_id, base, end), key_of(segment_id, base), size_bytes=SIZE)

    def listed(self) -> None:
        chosen = [self._looked_at(), self._looked_at()]
        keys = [key_of(each, self.spans[each][0], self.rng.choice(OBJECTS)) for each in chosen]
        unknown = [key_of(name, 0) for name in ("nobody", "stranger") if self.rng.random() < 0.4]
        some = self.rng.randint(0, 2)
        self.h.say(
            Inventory,
            component="scrub",
            object_count=10,
            size_bytes=10 * SIZE,
            listing_digest="0" * 64,
            missing_keys=tuple(keys[:some]) if self.rng.random() < 0.5 else (),
            deleted_keys=tuple(keys[some:]) if self.rng.random() < 0.3 else (),
            unknown_keys=tuple(unknown),
            differences_left_out=0,
            metadata_offset=self.h.tier_offset,
        )

    def tables_told(self) -> None:
        """By all three, or by the leader and one more; one of them may differ, and then tell all it has."""
        speakers = [*BROKERS]
        if self.rng.random() < 0.3:
            speakers = [self.h.leader, self.rng.choice([each for each in BROKERS if each != self.h.leader])]
        odd = self.rng.choice(speakers) if self.rng.random() < 0.6 else None
        self.h.tier_offset += 1
        for broker in speakers:
            digest = f"{self.h.tier_offset}{'b' if broker == odd else 'a'}"
            self.h.table(broker, digest)
        if odd is not None and self.rng.random() < 0.5:
            whole = dict.fromkeys(self.spans, "right")
            for broker in speakers:
                differs = broker == odd and self.rng.random() < 0.7
                self.h.table_set(broker, {**whole, self._any(): "wrong"} if differs else whole)

    def held(self) -> None:
        name = f"h{len(self.holds)}"
        self.holds[name] = True
        start = SEGMENT * self.rng.randrange(SEGMENTS)
        acts.holds(self.h, name, start, self.rng.choice((None, start + SEGMENT)))
        if self.rng.random() < 0.5:
            self._next()
            self.goes()

    def released(self) -> None:
        standing = sorted(name for name, stands in self.holds.items() if stands)
        if not standing:
            return
        name = self.rng.choice(standing)
        self.holds[name] = False
        acts.releases(self.h, name)

    def restored(self) -> None:
        start = SEGMENT * self.rng.randrange(SEGMENTS)
        end = start + self.rng.choice((0, SEGMENT, SEGMENT, 2 * SEGMENT))
        acts.restores(
            self.h,
            start,
            end,
            RestoreTarget.TIER,
            broker=None,
            generation=1,
            restore_id=f"r{self.h.now_ms}",
            planned=self.rng.choice((None, (start, end), (start, end + SEGMENT))),
        )

    def comes_again(self) -> None:
        """Under the next generation, as a restore does."""
        segment_id = self._any()
        self.generations[segment_id] = self.generations.get(segment_id, 0) + 1
        self.step(CopyStarted, segment_id)
        self.step(CopyFinished, segment_id)

    def watermark_read(self) -> None:
        """Of the leader, low or not, up to three times."""
        for _ in range(self.rng.randint(1, 3)):
            low = self.rng.choice((WATERMARK, WATERMARK - 3, WATERMARK - 3))
            self.h.watermark(self.h.leader, low, start=self.starts[self.h.leader], size_bytes=6 * SIZE)
            self.h.after(minutes=1)

    def elected(self) -> None:
        self.h.elects(self.rng.choice([each for each in BROKERS if each != self.h.leader]))

    def start_beyond(self) -> None:
        """A follower's, above what anybody published; read once more, or gone back before that."""
        broker = self.rng.choice([each for each in BROKERS if each != self.h.leader])
        old, new = self.starts[broker], WATERMARK + SEGMENT * self.rng.randint(0, 2)
        if new <= old:
            return
        self.h.start(broker, old, new, local=new, watermark=WATERMARK)
        if self.rng.random() < 0.5:
            self.h.after(minutes=2).watermark(broker, WATERMARK, start=new, size_bytes=SIZE)
            self.starts[broker] = new
        else:
            self.h.after(seconds=20).start(broker, new, old, local=old, watermark=WATERMARK)

    def far_ahead(self) -> None:
        days = self.rng.choice((0, 2, 30))
        base = SEGMENT * self.rng.randrange(SEGMENTS)
        name = f"far{len(self.spans)}"
        self._copy(name, base, max_timestamp_ms=self.h.now_ms + days * DAY_MS)

    def nothing(self) -> None:
        """Time passes."""


ACTIONS: tuple[Callable[[Tiers], None], ...] = (
    Tiers.told_again,
    Tiers.goes,
    Tiers.stranger_goes,
    Tiers.impossible,
    Tiers.early,
    Tiers.hangs,
    Tiers.fails,
    Tiers.scrubbed,
    Tiers.scrubbed,
    Tiers.read_through,
    Tiers.read_through,
    Tiers.listed,
    Tiers.listed,
    Tiers.tables_told,
    Tiers.held,
    Tiers.released,
    Tiers.restored,
    Tiers.comes_again,
    Tiers.watermark_read,
    Tiers.elected,
    Tiers.start_beyond,
    Tiers.far_ahead,
    Tiers.nothing,
)


def random_tier(seed: int) -> History:
    """The same for a seed, whoever asks."""
    tiers = Tiers(seed)
    for _ in range(tiers.rng.randint(2, 11)):
        tiers.rng.choice(ACTIONS)(tiers)
        tiers._next()
    tiers.h.now_ms += 10 * MINUTE_MS
    return tiers.h
