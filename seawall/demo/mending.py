"""What makes good: the prefix restored from versions, read back byte for byte, and what else was wrong.

Owns these proofs.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any

from backup.plan import AskedBy
from backup.plan.file import read_plan, write_plan
from backup.plan.make import Wish, make_plan
from backup.tier.apply import Restoration
from backup.tier.apply import apply as carry_out
from rules.events import Restored
from seawall.backup.finding import found_of
from seawall.backup.opened import now_ms, opened
from seawall.demo.heard import about, agree, setting
from seawall.demo.incidents import Incidents
from seawall.demo.judging import Judging
from seawall.demo.kafka import first_offset, read_from
from seawall.demo.records import DIVERGED, RACED, RECORDS, SHRUNK, TRIMMED, value
from seawall.demo.second_agent import BROKER_ID
from seawall.demo.telling import Told, mib, prove, spans
from seawall.demo.world import World
from seawall.local import kafka
from seawall.tier.scrub import evidence, state_folder

BACKUP = "backup"


class Mending:
    def __init__(self, world: World, incidents: Incidents, judging: Judging) -> None:
        self._world, self._incidents, self._judging = world, incidents, judging

    def restore(self) -> Told:
        """Plan by finding, and apply: of the trimmed log, and of the one that lost a race."""
        done = [self._restored(topic) for topic in (TRIMMED, RACED)]
        size_bytes = sum(each.size_bytes for each in done)
        objects = sum(each.objects_put_back for each in done)
        said = ", ".join(
            f"{each.plan.body.topic} {spans((one.start, one.end) for one in each.ranges)}" for each in done
        )
        return Told(
            says=f"backup plan --finding, and apply: {said}: {objects} objects, {mib(size_bytes)}, copied "
            "from their versions inside of the bucket",
            facts={"objects": objects, "size_bytes": size_bytes},
        )

    def read(self) -> Told:
        """By a Kafka consumer, of the endpoint that serves tier and broker as one log."""
        world = self._world
        clients, broker = world.start_serving(), world.cluster.bootstrap
        lost = self._incidents.trimmed_to
        first = first_offset(broker, TRIMMED)
        prove("the broker itself still begins behind the prefix", first == lost, first)
        count = 0
        for topic in (TRIMMED, SHRUNK, RACED):
            expected = 0
            for offset, found in read_from(clients, topic, 0, RECORDS):
                is_right = offset == expected and found == value(topic, offset)
                prove(f"{topic} {expected} is what was produced", is_right, (offset, found))
                expected += 1
            prove(f"of {topic} none is missing", expected == RECORDS, expected)
            count += expected
        return Told(
            says=f"confluent-kafka at `seawall serve` ({clients}), from offset 0: {count:,} records of "
            f"{TRIMMED}, {SHRUNK} and {RACED}, each byte as it was produced",
            facts={"records": count, "endpoint": clients},
        )

    def repair(self) -> Told:
        """The declared retention again, and the second table made anew from the topic."""
        world, since_ms = self._world, now_ms()
        kafka.set_config(world.cluster.bootstrap, SHRUNK, {"retention.bytes": "-1"})
        self._incidents.second.follow()
        self._incidents.produce_more()
        world.wait(
            lambda: agree(world.events(), DIVERGED, {1, BROKER_ID}, since_ms=since_ms), "both tables to agree"
        )
        self._incidents.awaited = [
            setting(SHRUNK, "retention.bytes", "-1", since_ms=since_ms),
            about(Restored, TRIMMED),
            about(Restored, RACED),
        ]
        return Told(
            says=f"{SHRUNK}: retention.bytes=-1 again, as declared; {DIVERGED}: the second table made anew "
            "from the topic, and the digests agree",
            facts={},
        )

    def _restored(self, topic: str) -> Restoration:
        world = self._world
        found = found_of(_first_root(world, self._judging.findings, topic))
        wish = Wish(by=AskedBy.FINDING, text=found.text, range=found.range, details=found.details)
        file = world.folder / f"{topic}-0.plan"
        with opened(world.settings) as backup:
            catalogue = backup.catalogue(found.log)
            policy = backup.policy(catalogue.topic)
            planned = make_plan(catalogue, wish, policy, now_ms=now_ms(), bucket=backup.store.bucket)
            prove(f"all of {topic}'s prefix can be had back", not planned.body.lost, planned.body.lost)
            write_plan(file, planned)
            folder = state_folder(None, backup.cluster_id, os.environ, BACKUP)
            with evidence(world.settings, folder, backup.cluster_id, BACKUP) as kept:
                done = carry_out(read_plan(file), backup.ports(kept, "demo", None))
                waiting = kept.close(lambda spool: spool.beat(event_id=_new_id(), occurred_at_ms=now_ms()))
        prove("the restore is told", waiting == 0, f"{waiting} events wait")
        tiered = world.tiered(topic)
        prove(f"{topic} begins at 0 again", tiered is not None and tiered[0] == 0, tiered)
        return done


def _new_id() -> str:
    return str(uuid.uuid4())


def _first_root(world: World, findings: list[dict[str, Any]], topic: str) -> Mapping[str, Any]:
    roots = (each for each in findings if each["parent"] is None and world.topic_of(each["subject"]) == topic)
    return min(roots, key=lambda each: each["ranges"])
