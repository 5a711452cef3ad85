"""The four incidents, each done to a topic of its own, and what the audit has to find of each: exactly that.

    trim      the leader comes back with another log start in its checkpoint file: it deletes the prefix
    diverge   one replica's table of the tier lacks a segment that it read past
    shrink    somebody sets another retention, and nobody declared it
    race      the start of the log in the tier moves too far, and the copies below it are removed

What the broker does is real. That a copy is removed, and that there is a second replica, is made up, with
the records that a mistaken writer would leave; each chapter says so.

Owns what is expected, and the evidence that must be there before anybody judges.
"""

from __future__ import annotations

from collections import defaultdict

from rules.events import DeleteFinished, LogStartAdvanced, SegmentDeletedLocal, TierSet
from seawall.demo.heard import Awaited, about
from seawall.demo.injuries import brought_back_start, remove_below
from seawall.demo.kafka import first_offset
from seawall.demo.records import DIVERGED, MORE_RECORDS, RACED, RECORDS, SHRUNK, TRIMMED, value
from seawall.demo.second_agent import BROKER_ID, SecondAgent
from seawall.demo.telling import Told, prove, spans
from seawall.demo.world import World
from seawall.local import kafka
from tiering.segments.keys import segment_key

Finding = tuple[str, str, tuple[tuple[int, int], ...]]  # rule, severity, ranges
TRIMMED_SEGMENTS, RACED_SEGMENTS = 3, 2


class Incidents:
    """In the order of its methods; `expected` and `awaited` grow with each."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.expected: dict[str, set[Finding]] = defaultdict(set)
        self.awaited: list[Awaited] = []
        self.produced = dict.fromkeys((TRIMMED, DIVERGED, SHRUNK, RACED), RECORDS)

    @property
    def trimmed_to(self) -> int:
        return self._trimmed_to

    def trim(self) -> Told:
        world = self._world
        segments = world.closed(TRIMMED)[:TRIMMED_SEGMENTS]
        start = self._trimmed_to = segments[-1][1]
        gone = remove_below(world.settings, world.folder / "remover-1", world.log(TRIMMED), start)
        prove("the copies below it are removed", gone == segments, gone)
        world.cluster.stop(1)
        brought_back_start(world.log_dir, TRIMMED, start)
        world.cluster.restart(1)
        bootstrap = world.cluster.bootstrap
        world.wait(lambda: first_offset(bootstrap, TRIMMED) == start, "the broker to believe its file")
        self.expected[TRIMMED] |= {("START-02", "C", ((0, start),))}
        self.expected[TRIMMED] |= {(rule, "C", (each,)) for rule in ("DEL-01", "SEG-09") for each in segments}
        self.awaited += [
            about(LogStartAdvanced, TRIMMED),
            *(about(SegmentDeletedLocal, TRIMMED, piece=each) for each in segments),
            *(about(DeleteFinished, TRIMMED, piece=each) for each in segments),
        ]
        return Told(
            says=f"{TRIMMED}: the leader restarts with {start} in its checkpoint of log starts, and deletes "
            f"[0, {start:,}) itself; the bucket's copies below are gone too: nobody can read the prefix",
            facts={"topic": TRIMMED, "lost": [0, start], "segments": len(segments)},
            notes=(
                "real: the checkpoint file, the restart, what the broker deletes",
                "made up: who removed the copies; it left the records and delete markers of a real removal",
            ),
        )

    def diverge(self) -> Told:
        world = self._world
        log = world.log(DIVERGED)
        view = world.table().view(log)
        assert view is not None
        lost = sorted(view.segments(), key=lambda each: each.base_offset)[1]
        self.second = SecondAgent(world.folder / "second-agent", world.cluster.cluster_id, world.config)
        world.ending(self.second.close)
        self.second.follow(but_for=segment_key(log, lost.segment_id))
        self.produce_more()
        world.wait_told(
            "both tables, told in full",
            *(about(TierSet, DIVERGED, broker_id=each) for each in (1, BROKER_ID)),
        )
        span = (lost.base_offset, lost.end_offset)
        self.expected[DIVERGED] |= {("META-01", "E", (span,))}
        return Told(
            says=f"{DIVERGED}: a second replica's table of the tier lacks {spans([span])}; the agents hear "
            "each other's digests, and each publishes all that it holds",
            facts={"topic": DIVERGED, "lacks": list(span)},
            notes=(
                f"made up: replica {BROKER_ID}, whose agent runs here without a broker; real: what they say",
            ),
        )

    def produce_more(self) -> None:
        """Enough for another segment of the diverged topic, so that tables change, and are compared."""
        first = self.produced[DIVERGED]
        self.produced[DIVERGED] += MORE_RECORDS
        values = (value(DIVERGED, each) for each in range(first, self.produced[DIVERGED]))
        acknowledged = kafka.produce(self._world.cluster.bootstrap, DIVERGED, values)
        prove("every record was acknowledged", acknowledged == MORE_RECORDS, acknowledged)

    def shrink(self) -> Told:
        world = self._world
        bootstrap, segments = world.cluster.bootstrap, world.closed(SHRUNK)
        kafka.set_config(bootstrap, SHRUNK, {"retention.bytes": "1"})
        world.wait(lambda: first_offset(bootstrap, SHRUNK) == segments[-1][1], "retention to delete")
        prove("the tier has what the broker has not", world.tiered(SHRUNK) == (0, segments[-1][1]))
        self.expected[SHRUNK] |= {("RET-03", "E", ())}
        self.awaited += [
            about(LogStartAdvanced, SHRUNK),
            *(about(SegmentDeletedLocal, SHRUNK, piece=each) for each in segments),
        ]
        return Told(
            says=f"{SHRUNK}: a script sets retention.bytes=1, and the broker deletes "
            f"[0, {segments[-1][1]:,}) within a second; the tier has had it all along",
            facts={"topic": SHRUNK, "deleted": [0, segments[-1][1]], "segments": len(segments)},
            notes=("real: the setting, and what the broker deletes",),
        )

    def race(self) -> Told:
        world = self._world
        segments = world.closed(RACED)[:RACED_SEGMENTS]
        start = segments[-1][1]
        gone = remove_below(world.settings, world.folder / "remover-2", world.log(RACED), start)
        prove("the copies below it are removed", gone == segments, gone)
        self.expected[RACED] |= {("DEL-01", "C", (each,)) for each in segments}
        self.awaited += [about(DeleteFinished, RACED, piece=each) for each in segments]
        return Told(
            says=f"{RACED}: two writers race, the log's start in the tier moves to {start}, and the copies "
            f"of [0, {start:,}) are removed, which the policy keeps for ever",
            facts={"topic": RACED, "removed": [0, start], "segments": len(segments)},
            notes=("made up: the writer that lost the race; real: its records, and S3's delete markers",),
        )
