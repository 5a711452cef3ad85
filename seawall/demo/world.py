"""What the story happens in: a broker, a bucket, the agent, the endpoint for consumers, and their settings.

Owns the processes, and this process's environment while it lasts: credentials of the local bucket and nothing
else of the user's, so that the story can never reach a real account. Everything is in `folder`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from audit_engine.topic.kafka import ensure_audit_topic
from audit_engine.wire import Envelope, decode
from rules.identity import LogId
from rules.machine import is_audited
from seawall.connections import segment_store
from seawall.demo.receiver import AlertReceiver
from seawall.events.kafka import hear
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.process import Child
from seawall.local.waiting import wait_until
from seawall.settings import Settings
from seawall.settings.load import load
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import EveryTopic, TopicFilter
from tiering.errors import StatedError
from tiering.reader.interface import TieredLog, tiered_log
from tiering.segments.kafka import check_topic, ensure_topic, replay
from tiering.segments.records import SegmentRecord
from tiering.segments.table import ReferenceTable
from tiering.store.patient import PatientStore

DEADLINE_S = 120.0
PREFIX = "demo"
METADATA_PARTITIONS = AUDIT_PARTITIONS = 2
SEGMENT_BYTES = 256 * 1024
# Kafka does in the background every half second what it does every half minute or five minutes by default.
QUICK_BROKER = {
    "log.initial.task.delay.ms": "200",
    "log.retention.check.interval.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "log.segment.delete.delay.ms": "500",
}
OF_THE_MACHINE = ("SEAWALL_CACHE_DIR", "SEAWALL_IVY_SETTINGS")  # where jars are, and come from
SETTINGS = """\
[kafka]
bootstrap = "{bootstrap}"

[s3]
bucket = "{bucket}"
prefix = "{prefix}"
endpoint_url = "{endpoint_url}"
region = "{region}"

[agent]
log_dirs = ["{log_dir}"]
state_dir = "{folder}/agent"
listen = "127.0.0.1:0"
rescan_s = 1
observe_every_s = 1
heartbeat_every_s = 1
metadata_partitions = {metadata_partitions}

[serve]
listen = "127.0.0.1:0"
metrics_listen = "127.0.0.1:0"
nodes = 1

[audit]
tables = "{folder}/tables"

[alerts]
state_dir = "{folder}/alerts"
deliver_s = 30

[[alerts.endpoints]]
name = "demo"
format = "native"
url = "{hook}"
secrets = ["file:{folder}/hook-secret"]
allow_private = true
"""


class World:
    """Made with nothing running; `start` starts, `close` ends all of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "seawall.toml"
        self._stack = ExitStack()
        self._topic_ids: dict[str, str] = {}
        self.clients = ""  # where consumers come to

    def start(self) -> None:
        self.bucket = LocalBucket(self.folder)
        self.cluster = LocalCluster(self.folder / "kafka", properties=QUICK_BROKER)
        self._stack.enter_context(self.bucket)
        self._stack.enter_context(self.cluster)
        self.receiver = AlertReceiver()
        self._stack.callback(self.receiver.close)
        self._stack.enter_context(_environment(self.bucket, self.folder))
        (self.folder / "hook-secret").write_text(self.receiver.secret)
        at = self.bucket.address
        self.file.write_text(
            SETTINGS.format(
                bootstrap=self.cluster.bootstrap,
                bucket=at.bucket,
                prefix=PREFIX,
                metadata_partitions=METADATA_PARTITIONS,
                endpoint_url=at.endpoint_url,
                region=at.region,
                log_dir=self.log_dir,
                folder=self.folder,
                hook=self.receiver.url,
            )
        )
        self.settings: Settings = load(file=self.file, environ={}).settings

    def close(self) -> None:
        self._stack.close()

    def ending(self, close: Callable[[], None]) -> None:
        """Have this called at the end, before what was there already ends."""
        self._stack.callback(close)

    @property
    def log_dir(self) -> Path:
        return self.cluster.log_dirs()[0]

    @property
    def config(self) -> dict[str, str]:
        return {"bootstrap.servers": self.cluster.bootstrap}

    # Processes of ours, as a user starts them.

    def start_agent(self) -> None:
        self.agent = self._run("agent")

    def start_serving(self) -> str:
        """Where clients come to."""
        addresses = self.folder / "serve.addresses"
        serving = self._run("serve", "--address-file", str(addresses))
        serving.wait_until_ready(addresses.exists, wanted="listening", deadline_s=DEADLINE_S)
        self.clients = addresses.read_text().split()[0]
        return self.clients

    def _run(self, verb: str, *more: str) -> Child:
        argv = [sys.executable, "-m", "seawall", verb, *more]
        env = {**os.environ, "SEAWALL_SETTINGS": str(self.file), "PYTHONPATH": os.pathsep.join(sys.path)}
        child = Child(name=f"seawall {verb}", argv=argv, log=self.folder / f"{verb}.log", env=env)
        child.start()
        self._stack.callback(child.kill)
        return child

    # Logs.

    def create(self, topic: str) -> None:
        small = {"internal.segment.bytes": str(SEGMENT_BYTES), "retention.ms": "-1"}
        kafka.create_topic(self.cluster.bootstrap, topic, config=small)

    def create_ours(self) -> None:
        """The agent's own topics, which it would make itself: here they are old enough, when it comes, to
        have their watermarks written down."""
        ensure_topic(self.config, partitions=METADATA_PARTITIONS)
        ensure_audit_topic(self.config, partitions=AUDIT_PARTITIONS)

    def closed(self, topic: str) -> list[tuple[int, int]]:
        """The closed segments on the broker's disk, in their order."""
        survey = Surveyor((self.log_dir,), topics=TopicFilter(include=(topic,)), now_ns=lambda: 0).survey()
        for local in survey.live.values():
            self._topic_ids[topic] = local.incarnation.topic_id
        return sorted(
            (each.base_offset, each.end_offset)
            for local in survey.live.values()
            for each in local.closed_segments
            if each.end_offset is not None
        )

    def log(self, topic: str) -> LogId:
        if topic not in self._topic_ids:
            self.closed(topic)
        return LogId(self.cluster.cluster_id, self._topic_ids[topic], 0)

    def topic_of(self, subject: str) -> str:
        """A finding's subject, with the topic's name in place of its id."""
        names = {topic_id: topic for topic, topic_id in self._topic_ids.items()}
        parts = subject.split("/")
        return names.get(parts[1], subject) if len(parts) > 1 else subject

    def table(self) -> ReferenceTable:
        """What the topic of metadata says now."""
        return replay(self.config, check_topic(self.config))

    def tiered(self, topic: str, table: ReferenceTable | None = None) -> tuple[int, int] | None:
        """The range of a log that the tier holds."""
        found = tiered_log(table or self.table(), self.log(topic))
        return (found.start, found.end) if isinstance(found, TieredLog) else None

    def covers(self, ends: Mapping[str, int]) -> bool:
        """Whether the tier holds each topic from 0 up to its offset."""
        try:
            table = self.table()
        except StatedError:  # the agent has not made the topic yet
            return False
        return all(self.tiered(topic, table) == (0, end) for topic, end in ends.items())

    def records(self, topic: str) -> list[SegmentRecord]:
        """Every copy of a log that was finished, removed ones too, in the order of their offsets."""
        of_log = self.table().of(self.log(topic))
        assert of_log is not None
        view = of_log.view(self.log(topic))
        assert view is not None
        found = (of_log.segment(self.log(topic), each.segment_id) for each in view.segments())
        return sorted((each for each in found if each is not None), key=lambda each: each.base_offset)

    def store(self) -> PatientStore:
        return segment_store(self.settings)

    def watermarks(self) -> dict[str, int | None]:
        """What the broker has written down of each log, its own bookkeeping apart; the least of a topic's."""
        survey = Surveyor((self.log_dir,), topics=EveryTopic(), now_ns=lambda: 0).survey()
        found: dict[str, int | None] = {}
        for at, local in survey.live.items():
            marks = [local.checkpoint_high_watermark]
            marks += [found[at.topic]] if at.topic in found else []
            found[at.topic] = None if None in marks else min(each for each in marks if each is not None)
        return {topic: each for topic, each in found.items() if is_audited(topic)}

    # Evidence.

    def events(self) -> list[Envelope]:
        """All that was told until now."""
        return [decode(each.value) for each in hear(self.config, since_ms=0)]

    def wait(self, is_so: Callable[[], bool], wanted: str) -> None:
        wait_until(is_so, name="the demo", wanted=wanted, deadline_s=DEADLINE_S)

    def wait_told(self, wanted: str, *is_told: Callable[[Envelope], bool]) -> None:
        """Until for each of these some event is there."""

        def is_so() -> bool:
            said = self.events()
            return all(any(each(one) for one in said) for each in is_told)

        self.wait(is_so, wanted)


@contextmanager
def _environment(bucket: LocalBucket, folder: Path) -> Iterator[None]:
    """This process's, and so its children's: the local bucket's credentials, and nothing of the user's."""
    before = dict(os.environ)
    ours = {
        "AWS_ACCESS_KEY_ID": bucket.address.access_key_id,
        "AWS_SECRET_ACCESS_KEY": bucket.address.secret_access_key,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "XDG_STATE_HOME": str(folder / "state"),
    }
    for name in [each for each in os.environ if each.startswith(("AWS_", "SEAWALL_"))]:
        if name not in OF_THE_MACHINE:
            del os.environ[name]
    os.environ.update(ours)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
