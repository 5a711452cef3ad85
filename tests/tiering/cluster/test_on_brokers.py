"""What real brokers answer, and what a real broker's log dirs show: no fake knows these better."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.node import Node
from seawall.local.ports import ReservedPort
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.cluster.cases_logs import partition_folder
from tests.cluster.elections import ask_for_preferred
from tests.cluster.produce import QUICK_HOUSEKEEPING, Writer, texts, transactional
from tiering.cluster.errors import ClusterUnreachable
from tiering.cluster.file_events import FileEvents, Lookout
from tiering.cluster.host import HostSurvey
from tiering.cluster.interface import (
    BrokerSettings,
    Cause,
    DescribedTopic,
    LeaderOffsets,
    Leadership,
    TopicPartition,
    TopicSettings,
    Unknown,
)
from tiering.cluster.kafka import KafkaCluster
from tiering.cluster.leadership import AdminLeadership, KraftLeadership
from tiering.cluster.log_dirs import Surveyor, metadata_log_in
from tiering.cluster.metadata_log import MetadataLogFollower
from tiering.cluster.quorum import QuorumMark
from tiering.cluster.quorum.client import QuorumClient
from tiering.cluster.settings import Source
from tiering.cluster.topics import TopicFilter

DEADLINE_S = 60.0
SASL_LISTENER = "SAFE"
USER, PASSWORD = "seawall", "not-a-secret"
KEPT_HOURS = 5


def asked_of(cluster: LocalCluster, settings: Mapping[str, str] | None = None) -> KafkaCluster:
    librdkafka = {"bootstrap.servers": cluster.bootstrap, **(settings or {})}
    return KafkaCluster(librdkafka, monotonic_s=time.monotonic)


def offsets_of(asked: KafkaCluster, topic: str) -> LeaderOffsets:
    """The leader's answer, waited for: a topic just made may not be known to every broker yet."""
    partition = TopicPartition(topic, 0)
    found: list[LeaderOffsets] = []

    def is_known() -> bool:
        answer = asked.leader_offsets([partition])[partition]
        found[:] = [answer] if isinstance(answer, LeaderOffsets) else []
        return bool(found)

    wait_until(is_known, name=topic, wanted="an answer of its leader", deadline_s=DEADLINE_S)
    return found[0]


def survey_of(cluster: LocalCluster, node_id: int = 1, topics: str = "*") -> HostSurvey:
    paths = cluster.log_dirs(node_id)
    return Surveyor(paths, topics=TopicFilter(include=(topics,)), now_ns=time.time_ns).survey()


def test_the_leaders_offsets_are_those_of_the_log(broker: LocalCluster) -> None:
    """High watermark, last stable offset, log start and epoch, of the topic whose directory is on disk."""
    produce.create_topic(broker, "asked-plain")
    Writer(broker, "asked-plain", "plain").send_all(texts(50))

    answer = offsets_of(asked_of(broker), "asked-plain")

    [replica] = survey_of(broker, topics="asked-plain").live.values()
    assert answer == LeaderOffsets(
        topic_id=replica.incarnation.topic_id,
        leader_id=1,
        leader_epoch=0,
        high_watermark=50,
        last_stable_offset=50,
        log_start=0,
    )


def test_an_open_transaction_holds_the_last_stable_offset(broker: LocalCluster) -> None:
    """Until it is decided; the high watermark goes on meanwhile."""
    produce.create_topic(broker, "asked-transaction")
    Writer(broker, "asked-transaction", "plain").send_all(texts(10))
    writer = transactional(broker, "asked-transaction", "asked-txn")
    asked = asked_of(broker)
    writer.begin()
    writer.send_all(texts(20))

    during = offsets_of(asked, "asked-transaction")
    writer.commit()

    assert (during.last_stable_offset, during.high_watermark) == (10, 30)
    wait_until(
        lambda: offsets_of(asked, "asked-transaction").last_stable_offset == 31,  # its marker is a record
        name="asked-transaction",
        wanted="decided",
        deadline_s=DEADLINE_S,
    )


def test_what_is_not_there_is_unknown_and_the_rest_is_answered(broker: LocalCluster) -> None:
    """No topic, or no such partition of it: nobody said that this broker does not lead it."""
    produce.create_topic(broker, "asked-there")
    asked = asked_of(broker)
    there, missing = TopicPartition("asked-there", 0), TopicPartition("asked-nowhere", 0)
    too_high = TopicPartition("asked-there", 7)
    leadership = AdminLeadership(asked, broker_id=1, local_epoch=lambda _: 0)
    offsets_of(asked, "asked-there")

    answers = asked.leader_offsets([there, missing, too_high])
    led = leadership.leadership([there, missing, too_high])

    assert isinstance(answers[there], LeaderOffsets)
    assert isinstance(led[there], Leadership)
    for unknown in (answers[missing], answers[too_high], led[missing], led[too_high]):
        assert isinstance(unknown, Unknown)
        assert unknown.cause is Cause.NO_SUCH_TOPIC
    assert isinstance(asked.topic_settings(["asked-nowhere"])["asked-nowhere"], Unknown)
    assert "asked-nowhere" not in kafka.admin_client(broker.bootstrap).list_topics(timeout=10).topics


def test_a_broker_that_does_not_answer_is_unknown(broker: LocalCluster) -> None:
    """A leader that hangs does not say that it does not lead; once it answers, so does the client."""
    produce.create_topic(broker, "asked-hanging")
    asked = KafkaCluster(
        {"bootstrap.servers": broker.bootstrap}, monotonic_s=time.monotonic, answer_timeout_s=0.5
    )
    before = offsets_of(asked, "asked-hanging")
    partition = TopicPartition("asked-hanging", 0)

    broker.pause()
    try:
        during = asked.leader_offsets([partition])[partition]
    finally:
        broker.resume()

    assert isinstance(during, Unknown)
    assert during.cause is Cause.NO_ANSWER
    assert offsets_of(asked, "asked-hanging") == before


def test_many_threads_ask_through_one_client(broker: LocalCluster) -> None:
    """Each gets the answer to its own question, whoever else is asking."""
    topics = [f"asked-by-many-{n}" for n in range(6)]
    for n, topic in enumerate(topics):
        produce.create_topic(broker, topic)
        Writer(broker, topic, "plain").send_all(texts(n + 1))
    asked = asked_of(broker)
    offsets_of(asked, topics[-1])
    wrong: list[object] = []

    def ask(count: int, topic: str) -> None:
        for _ in range(20):
            answer = asked.leader_offsets([TopicPartition(topic, 0)])[TopicPartition(topic, 0)]
            settings = asked.topic_settings([topic])[topic]
            good = isinstance(answer, LeaderOffsets) and answer.high_watermark == count
            if not good or not isinstance(settings, TopicSettings):
                wrong.append((topic, answer, settings))

    threads = [threading.Thread(target=ask, args=(n + 1, topic)) for n, topic in enumerate(topics)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(DEADLINE_S)

    assert not any(each.is_alive() for each in threads)
    assert wrong == []


def test_a_topic_made_anew_is_another_topic(broker: LocalCluster) -> None:
    """Under the same name the id differs, in the offsets and on the disk; the old directory is set aside."""
    produce.create_topic(broker, "asked-anew", config={"file.delete.delay.ms": "3600000"})
    Writer(broker, "asked-anew", "plain").send_all(texts(30))
    asked = asked_of(broker)
    before = offsets_of(asked, "asked-anew")

    kafka.delete_topic(broker.bootstrap, "asked-anew")
    between = asked.leader_offsets([TopicPartition("asked-anew", 0)])[TopicPartition("asked-anew", 0)]
    produce.create_topic(broker, "asked-anew")
    after = offsets_of(asked, "asked-anew")

    assert isinstance(between, Unknown)
    assert between.cause is Cause.NO_SUCH_TOPIC
    assert (before.high_watermark, after.high_watermark) == (30, 0)
    assert before.topic_id != after.topic_id
    survey = survey_of(broker, topics="asked-anew")
    assert [each.incarnation.topic_id for each in survey.live.values()] == [after.topic_id]
    assert [path.name.endswith("-delete") for path in survey.log_dirs[0].set_aside] == [True]


def test_the_lookout_sees_a_roll_and_a_rename(broker: LocalCluster) -> None:
    """A new segment, and one renamed to .deleted, wake whoever waits; records alone do not."""
    produce.create_topic(broker, "watched", config={"file.delete.delay.ms": "3600000"})
    writer = Writer(broker, "watched", "plain")
    writer.send_all(texts(10))
    folder = partition_folder(broker, "watched")
    events = FileEvents()
    assert events.follow([], [folder]) == ()
    lookout = Lookout(events, monotonic_s=time.monotonic, wait_s=lambda _: None, rescan_s=DEADLINE_S * 10)
    assert lookout.wait(0.0).value == "rescan"  # the first look is given at once

    quiet = lookout.wait(0.1)
    writer.send_all(texts(300))
    rolled = lookout.wait(DEADLINE_S)
    assert len(list(folder.glob("*.log"))) > 1
    kafka.set_config(broker.bootstrap, "watched", {"retention.bytes": "1"})
    wait_until(
        lambda: lookout.wait(DEADLINE_S).value == "event" and any(folder.glob("*.deleted")),
        name="watched",
        wanted="a renamed segment",
        deadline_s=DEADLINE_S,
    )
    events.close()

    assert (quiet.value, rolled.value) == ("not_yet", "event")


def test_sources_of_leadership_agree_and_the_epoch_moves_with_it(cluster3: LocalCluster) -> None:
    """A leader is killed, comes back and is elected again: no answer in between is of a broker that is not
    the leader of its epoch, and at rest the metadata log and the admin API say the same."""
    topic, partition = "asked-moves", TopicPartition("asked-moves", 0)
    produce.create_topic(cluster3, topic, replication=3)
    writer = Writer(cluster3, topic, "plain")
    writer.send_all(texts(20))
    asked = asked_of(cluster3)
    first = offsets_of(asked, topic)
    leaders = {first.leader_epoch: first.leader_id}

    def has_moved_on(epoch: int) -> bool:
        answer = asked.leader_offsets([partition])[partition]
        if isinstance(answer, Unknown):
            return False
        assert leaders.setdefault(answer.leader_epoch, answer.leader_id) == answer.leader_id
        return answer.leader_epoch > epoch

    cluster3.kill(first.leader_id)
    wait_until(lambda: has_moved_on(0), name=topic, wanted="another leader", deadline_s=DEADLINE_S)
    writer.send_all(texts(20))
    moved = offsets_of(asked, topic)
    assert_sources_agree(cluster3, asked, moved, partition)
    cluster3.restart(first.leader_id)

    def is_back() -> bool:
        ask_for_preferred(
            cluster3, topic
        )  # not needed any more where it was elected and has not answered yet
        return has_moved_on(moved.leader_epoch)

    wait_until(
        is_back,
        name=topic,
        wanted="its first leader back",
        deadline_s=DEADLINE_S,
    )
    back = offsets_of(asked, topic)

    assert moved.high_watermark == back.high_watermark == 40
    assert (moved.leader_id != first.leader_id, back.leader_id) == (True, first.leader_id)
    assert first.leader_epoch < moved.leader_epoch < back.leader_epoch
    assert_sources_agree(cluster3, asked, back, partition)


def assert_sources_agree(
    cluster: LocalCluster, asked: KafkaCluster, offsets: LeaderOffsets, partition: TopicPartition
) -> None:
    """Beside the leader: its metadata log, the admin API with its disk, and ListOffsets say one thing."""
    here = offsets.leader_id
    log_dirs = cluster.log_dirs(here)
    metadata = metadata_log_in(log_dirs)
    assert metadata is not None
    by_log = KraftLeadership(MetadataLogFollower(metadata), now_ms=lambda: time.time_ns() // 1_000_000)
    by_admin = AdminLeadership(
        asked,
        broker_id=here,
        local_epoch=lambda each: survey_of(cluster, here).live[each].local_epoch,
    )
    told: list[tuple[object, object]] = []

    def agree() -> bool:
        one, other = by_log.leadership([partition])[partition], by_admin.leadership([partition])[partition]
        told[:] = [(one, other)]
        if not isinstance(one, Leadership) or not isinstance(other, Leadership):
            return False
        return facts(one) == facts(other)

    wait_until(agree, name=partition.topic, wanted="both sources to agree", deadline_s=DEADLINE_S)
    [(one, _)] = told
    assert isinstance(one, Leadership)
    assert (one.leader_id, one.leader_epoch) == (offsets.leader_id, offsets.leader_epoch)
    assert one.topic_id == offsets.topic_id


def facts(leadership: Leadership) -> tuple[object, ...]:
    isr = frozenset(leadership.isr)
    return leadership.topic_id, leadership.leader_id, leadership.leader_epoch, leadership.replicas, isr


class SafeBroker(LocalCluster):
    """One broker on two disks, with static retention, and a second listener that asks for a password."""

    def __init__(self, folder: Path, port: ReservedPort) -> None:
        self._safe_address = port.address
        super().__init__(folder, log_dirs_per_node=2, properties=QUICK_HOUSEKEEPING)

    @property
    def safe_bootstrap(self) -> str:
        return self._safe_address

    def _properties_of(self, node: Node) -> dict[str, str]:
        properties = super()._properties_of(node)
        mechanism = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return properties | {
            "listeners": f"{properties['listeners']},{SASL_LISTENER}://{self._safe_address}",
            "advertised.listeners": (
                f"{properties['advertised.listeners']},{SASL_LISTENER}://{self._safe_address}"
            ),
            "listener.security.protocol.map": (
                f"{properties['listener.security.protocol.map']},{SASL_LISTENER}:SASL_PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN",
            f"listener.name.{SASL_LISTENER.lower()}.plain.sasl.jaas.config": (
                f'{mechanism} required username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
            ),
            "log.retention.hours": str(KEPT_HOURS),
            "log.retention.bytes": "123456789",
        }


@pytest.fixture(scope="module")
def safe_broker(servers_folder: Path) -> Iterator[SafeBroker]:
    """A broker that a client has to log in to."""
    with ReservedPort() as port:
        cluster = SafeBroker(servers_folder / "safe", port)
        with cluster:
            yield cluster


@pytest.mark.jvm
def test_settings_say_who_set_them_static_defaults_included(safe_broker: SafeBroker) -> None:
    """A topic's own, a broker's own set while it runs, its server.properties', and Kafka's."""
    bootstrap = safe_broker.bootstrap
    produce.create_topic(safe_broker, "set", segment_bytes=None, config={"retention.ms": "1000"})
    kafka.create_topic(bootstrap, "unset")
    broker_kind = kafka.ResourceType.BROKER
    kafka.set_config(bootstrap, "1", {"log.segment.delete.delay.ms": "7000"}, kind=broker_kind)
    asked = asked_of(safe_broker)
    found: list[TopicSettings] = []

    def is_applied() -> bool:
        settings = asked.topic_settings(["set", "unset"])
        assert all(isinstance(each, TopicSettings) for each in settings.values())
        found[:] = [each for each in settings.values() if isinstance(each, TopicSettings)]
        return all(each.file_delete_delay_ms.value == 7000 for each in found)

    wait_until(is_applied, name="settings", wanted="applied", deadline_s=DEADLINE_S)
    here = asked.broker_settings(1)

    of_topic, of_none = found
    hours_ms = KEPT_HOURS * 3_600_000
    assert (of_topic.retention_ms.value, of_topic.retention_ms.source) == (1000, Source.TOPIC)
    assert of_none.retention_ms.value == hours_ms
    assert (of_none.retention_bytes.value, of_none.retention_bytes.source) == (123456789, Source.STATIC)
    delay = of_none.file_delete_delay_ms
    assert (delay.value, delay.source) == (7000, Source.BROKER)
    assert of_none.cleanup_policy.source is Source.DEFAULT
    assert isinstance(here, BrokerSettings)
    seen = of_none.as_seen_by(here).retention_ms
    assert (seen.value, seen.source) == (hours_ms, Source.STATIC)
    assert of_topic.as_seen_by(here).retention_ms == of_topic.retention_ms


@pytest.mark.jvm
def test_a_client_logs_in_with_what_the_settings_say(safe_broker: SafeBroker) -> None:
    """SASL_PLAINTEXT, mechanism PLAIN: everything is answered; with a wrong password it is REFUSED."""
    produce.create_topic(safe_broker, "behind-a-password")
    login = {
        "bootstrap.servers": safe_broker.safe_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    asked = asked_of(safe_broker, login)
    stranger = KafkaCluster(
        {**login, "sasl.password": "wrong"}, monotonic_s=time.monotonic, answer_timeout_s=2.0
    )

    assert asked.identity().cluster_id == safe_broker.cluster_id
    assert isinstance(asked.describe_topics(["behind-a-password"])["behind-a-password"], DescribedTopic)
    assert offsets_of(asked, "behind-a-password").leader_id == 1
    assert isinstance(asked.broker_settings(1), BrokerSettings)
    refused = stranger.describe_topics(["behind-a-password"])["behind-a-password"]
    assert isinstance(refused, Unknown)
    assert refused.cause is Cause.REFUSED
    with pytest.raises(ClusterUnreachable, match="uthentication"):
        stranger.identity()


@pytest.mark.jvm
def test_the_quorum_is_asked_with_what_the_settings_say(safe_broker: SafeBroker) -> None:
    """By a password too; the answer covers what the broker's log holds; a wrong password is REFUSED."""
    login = {
        "bootstrap.servers": safe_broker.safe_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    metadata = metadata_log_in(safe_broker.log_dirs(1))
    assert metadata is not None
    follower = MetadataLogFollower(metadata)
    asked, stranger = QuorumClient(login), QuorumClient({**login, "sasl.password": "wrong"})

    follower.poll()
    answer, refused = asked.mark(), stranger.mark()

    assert isinstance(answer, QuorumMark)
    assert (answer.leader_id, answer.leader_epoch) == (1, follower.image.epoch)
    assert answer.high_watermark >= follower.image.end_offset
    assert isinstance(refused, Unknown)
    assert refused.cause is Cause.REFUSED
    asked.close()


@pytest.mark.jvm
def test_a_survey_covers_every_disk_and_names_what_it_cannot_read(
    safe_broker: SafeBroker, tmp_path: Path
) -> None:
    """Two disks of one broker, a third that is not mounted, a replica moving in, one thrown out, one cut off
    from its topic, and one that does not say whose it is."""
    produce.create_topic(safe_broker, "spread", partitions=6)
    for number in range(6):
        Writer(safe_broker, "spread", "plain").send_all(texts(200), partition=number)
    first, second = safe_broker.log_dirs()
    missing = tmp_path / "not-mounted"
    whole = Surveyor([first, second], topics=TopicFilter(include=("spread",)), now_ns=time.time_ns)
    live = whole.survey().live
    folders = {each: replica.path for each, replica in live.items()}

    copy_from, *others = sorted(folders.values())
    strangers = {
        "future": f"{copy_from.name}.0123456789abcdef0123456789abcdef-future",
        "stray": f"{copy_from.name}.0123456789abcdef0123456789abcdef-stray",
    }
    for name in strangers.values():
        folder = tmp_path / "disk" / name
        folder.mkdir(parents=True)
        for file in ("partition.metadata", "leader-epoch-checkpoint"):
            (folder / file).write_bytes((copy_from / file).read_bytes())
    (tmp_path / "disk" / "meta.properties").write_bytes((first / "meta.properties").read_bytes())
    nameless = tmp_path / "disk" / "spread-77"
    nameless.mkdir()
    paths = [first, second, tmp_path / "disk", missing]
    survey = Surveyor(paths, topics=TopicFilter(include=("spread",)), now_ns=time.time_ns).survey()

    assert set(live) == {TopicPartition("spread", number) for number in range(6)}
    assert {path.parent for path in folders.values()} == {first, second}
    assert all(replica.closed_segments and replica.local_epoch == 0 for replica in live.values())
    assert whole.survey().is_complete
    assert survey.live.keys() == live.keys()
    assert [each.path for each in survey.offline] == [missing]
    assert not survey.is_complete
    handmade = survey.log_dirs[2]
    assert [each.state.value for each in handmade.partitions] == ["future"]
    assert [path.name for path in handmade.set_aside] == [strangers["stray"]]
    assert [each.path for each in handmade.unreadable] == [nameless]
    assert len(others) == 5
