"""The chapters in their order, and the servers that they share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event

from rules.policy.record import declared_change
from seawall.backup.opened import now_ms
from seawall.demo.incidents import Incidents
from seawall.demo.judging import Judging
from seawall.demo.mending import Mending
from seawall.demo.records import POLICY, RECORDS, TOPICS, value
from seawall.demo.spark import Audit
from seawall.demo.telling import Chapter, Told, mib, prove
from seawall.demo.world import World
from seawall.local import kafka
from seawall.policy.file import read_file
from seawall.policy.kafka import open_cluster

BEAT_S = 1.0


class Demo:
    """The story over one folder. Use it as a context: leaving it ends every server, whatever happened."""

    def __init__(self, folder: Path, report: Path) -> None:
        self._world = World(folder)
        self._report = report

    def __enter__(self) -> Demo:
        return self

    def __exit__(self, *_: object) -> None:
        self._world.close()

    def chapters(self) -> Iterator[Chapter]:
        """In order; each needs those before it."""
        yield Chapter(name="start", doing="starting a broker and a bucket", act=self.start)
        yield Chapter(name="produce", doing="producing until segments close", act=self.produce)
        yield Chapter(name="tier", doing="running the agent that copies them to S3", act=self.tier)
        made = self._incidents = Incidents(self._world)
        yield Chapter(name="trim", doing="restarting the broker on a corrupted checkpoint", act=made.trim)
        yield Chapter(name="diverge", doing="losing a record on its way into a table", act=made.diverge)
        yield Chapter(name="shrink", doing="setting another retention", act=made.shrink)
        yield Chapter(name="race", doing="moving a start too far", act=made.race)
        judging = Judging(self._world, made, self._audit)
        mending = Mending(self._world, made, judging)
        yield Chapter(name="audit", doing="ingesting the evidence, and judging it", act=judging.find)
        yield Chapter(name="alert", doing="telling people", act=judging.alert)
        yield Chapter(name="hold", doing="holding what is left", act=judging.hold)
        yield Chapter(name="restore", doing="putting the prefix back", act=mending.restore)
        yield Chapter(name="read", doing="reading it all from offset 0", act=mending.read)
        yield Chapter(name="repair", doing="putting right what else was wrong", act=mending.repair)
        yield Chapter(name="pass", doing="auditing again", act=judging.close)
        yield Chapter(name="report", doing="writing the report", act=partial(judging.report, self._report))

    def start(self) -> Told:
        self._world.start()
        self._audit = Audit(self._world.folder)  # Spark starts beside what comes next
        self._world.ending(self._audit.close)
        broker, bucket = self._world.cluster.bootstrap, self._world.bucket.address.endpoint_url
        return Told(
            says=f"a Kafka broker at {broker}, and an S3 bucket at {bucket} with versions and object lock",
            facts={"broker": broker, "bucket": bucket},
        )

    def produce(self) -> Told:
        world = self._world
        self._declare()
        world.create_ours()
        for topic in TOPICS:
            world.create(topic)
        for topic in TOPICS:
            acknowledged = kafka.produce(
                world.cluster.bootstrap, topic, (value(topic, each) for each in range(RECORDS))
            )
            prove("every record was acknowledged", acknowledged == RECORDS, f"{acknowledged} of {RECORDS}")
        world.wait(self._is_written_down, "every watermark to be written down")
        closed = [each for topic in TOPICS for each in world.closed(topic)]
        prove("segments have closed", len(closed) >= 6 * len(TOPICS), closed)
        return Told(
            says=f"{len(TOPICS) * RECORDS:,} records acknowledged in {', '.join(TOPICS)}; {len(closed)} "
            "segments closed; a policy declares that all of it is kept for ever",
            facts={"records": len(TOPICS) * RECORDS, "closed_segments": len(closed)},
        )

    def tier(self) -> Told:
        """`seawall agent`, as a user runs it, until the tier covers all that is closed."""
        world = self._world
        world.start_agent()
        ends = {topic: world.closed(topic)[-1][1] for topic in TOPICS}
        world.wait(lambda: world.covers(ends), "every closed segment in the tier")
        records = [each for topic in TOPICS for each in world.records(topic)]
        objects = [ref for record in records for _, ref in record.objects.present()]
        store = world.store()
        for ref in objects:
            stored = store.head(ref.key, ref.version_id)
            kept = stored.size_bytes, stored.checksum
            prove(f"{ref.key} is kept as it was committed", kept == (ref.size_bytes, ref.checksum), kept)
        size_bytes = sum(record.size_bytes for record in records)
        return Told(
            says=f"{len(records)} segments, {mib(size_bytes)}, as {len(objects)} objects, each stored once "
            "with a checksum that the store checked",
            facts={"segments": len(records), "objects": len(objects), "size_bytes": size_bytes},
        )

    def keep(self, stop: Event) -> None:
        """Let everything run, and the second agent be heard, until it is told to stop."""
        while not stop.wait(BEAT_S):
            self._incidents.second.beat()

    @property
    def settings_file(self) -> Path:
        return self._world.file

    def addresses(self) -> dict[str, str]:
        """What to play with."""
        at = self._world.bucket.address
        return {
            "bootstrap": self._world.cluster.bootstrap,
            "serve": self._world.clients,
            "bucket": f"{at.endpoint_url} {at.bucket}",
            "access_key_id": at.access_key_id,
            "secret_access_key": at.secret_access_key,
        }

    def _is_written_down(self) -> bool:
        """What is lost is told as far as it was known to be committed when it was first seen."""
        marks = self._world.watermarks()
        return None not in marks.values() and all(marks.get(topic) == RECORDS for topic in TOPICS)

    def _declare(self) -> None:
        file = self._world.folder / "policy.toml"
        file.write_text(POLICY)
        opened = open_cluster(self._world.settings)
        change = declared_change(
            policy=read_file(file),
            base=None,
            cluster_id=opened.cluster_id,
            principal="demo",
            change_id="DEMO-1",
            occurred_at_ms=now_ms(),
        )
        opened.changes.append(change)
