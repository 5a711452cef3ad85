"""The rights that are written, on a broker that enforces them: each role can do its work, and no more."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its stubs forget to re-export these
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from audit_engine.topic import TOPIC as AUDIT_TOPIC
from seawall.agent.agent import run
from seawall.agent.world import World
from seawall.init.permissions import acls
from seawall.init.permissions.roles import CHOSEN_TOPICS, ROLES, KafkaRight, Resource
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.node import Node
from seawall.local.ports import ReservedPort
from seawall.local.waiting import wait_until
from seawall.settings import load
from tests.cluster import produce
from tests.seawall.cli.calling import Called, call
from tests.seawall.init.around import LATEST, state
from tests.seawall.init.around import acls as acls_of
from tiering.scrub.shared.errors import SharedScrubError
from tiering.scrub.shared.kafka import KafkaPost, KafkaVoice
from tiering.scrub.shared.topics import GROUP
from tiering.scrub.shared.topics.kafka import ensure_topics
from tiering.scrub.shared.words import Answer, encode_word
from tiering.segments.records import SegmentId
from workers.consumer.kafka import KafkaSource

pytestmark = pytest.mark.jvm

LISTENER = "SAFE"
PASSWORD = "spring-tide"
BY_NAME = {role.name: role for role in ROLES}
USERS = (*BY_NAME, "topics-only", "nobody")
ANSWER_S = 30.0
WORK_DEADLINE_S = 90.0


class SecuredBroker(LocalCluster):
    """One broker with Kafka's own authorizer; who comes by the second listener has a name and few rights."""

    def __init__(self, folder: Path, port: ReservedPort) -> None:
        self.safe_address = port.address
        super().__init__(folder, properties=produce.QUICK_HOUSEKEEPING)

    def _properties_of(self, node: Node) -> dict[str, str]:
        properties = super()._properties_of(node)
        users = " ".join(f'user_{name}="{PASSWORD}"' for name in USERS)
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        added = f",{LISTENER}://{self.safe_address}"
        return properties | {
            "listeners": properties["listeners"] + added,
            "advertised.listeners": properties["advertised.listeners"] + added,
            "listener.security.protocol.map": (
                f"{properties['listener.security.protocol.map']},{LISTENER}:SASL_PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN",
            f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": f"{module} required {users};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",  # by the first listener: the broker itself, and these tests
        }


@pytest.fixture(scope="module")
def secured(servers_folder: Path) -> Iterator[SecuredBroker]:
    """The roles' rights are there as the tables have them, but ingest's, and one topic."""
    with ReservedPort() as port:
        cluster = SecuredBroker(servers_folder / "secured", port)
        with cluster:
            kafka.create_topic(cluster.bootstrap, "orders", config={"retention.ms": "86400000"})
            _allow(cluster)
            yield cluster


def _allow(cluster: SecuredBroker) -> None:
    bindings = [
        binding
        for name in ("reader", "agent-observe", "agent-tier", "agent-trim", "scrub-worker", "operator")
        for right in BY_NAME[name].kafka
        for binding in bindings_of(right, name)
    ]
    describe = KafkaRight(resource=Resource.TOPIC, name="*", operations=("Describe",), why="")
    bindings += bindings_of(describe, "topics-only")
    admin = kafka.admin_client(cluster.bootstrap)
    for future in admin.create_acls(bindings).values():
        future.result(ANSWER_S)


def bindings_of(right: KafkaRight, name: str) -> list[AclBinding]:
    kind = {
        Resource.CLUSTER: ResourceType.BROKER,  # librdkafka's name for the cluster
        Resource.TOPIC: ResourceType.TOPIC,
        Resource.GROUP: ResourceType.GROUP,
    }[right.resource]
    pattern = ResourcePatternType.PREFIXED if right.is_prefix else ResourcePatternType.LITERAL
    return [
        AclBinding(
            kind,
            "orders" if right.name == CHOSEN_TOPICS else right.name or "kafka-cluster",
            pattern,
            f"User:{name}",
            "*",
            AclOperation[snake(operation)],
            AclPermissionType.ALLOW,
        )
        for operation in right.operations
    ]


def snake(operation: str) -> str:
    return "".join(f"_{each}" if each.isupper() else each for each in operation).strip("_").upper()


def login(cluster: SecuredBroker, user: str) -> dict[str, str]:
    """As variables of the environment."""
    prefix = "SEAWALL_KAFKA__CLIENT__"
    return {
        "SEAWALL_KAFKA__BOOTSTRAP": cluster.safe_address,
        f"{prefix}SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        f"{prefix}SASL_MECHANISM": "PLAIN",
        f"{prefix}SASL_USERNAME": user,
        f"{prefix}SASL_PASSWORD": PASSWORD,
    }


def as_librdkafka(cluster: SecuredBroker, user: str) -> dict[str, str]:
    """The same for a client of one's own."""
    return {
        "bootstrap.servers": cluster.safe_address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": PASSWORD,
    }


def run_as(cluster: SecuredBroker, user: str, *arguments: str) -> Called:
    return call(*arguments, environ=login(cluster, user))


def init(cluster: SecuredBroker, user: str, out: Path) -> Called:
    return run_as(cluster, user, "init", "--out", str(out), "--observe", "0", "--json")


def gaps(ran: Called) -> set[str]:
    return {each["what"] for each in json.loads(ran.stdout)["not_known"]}


def test_who_may_only_look_sees_everything_and_so_nothing_can_have_been_changed(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    """With the reader's rights, none of which changes anything, nothing is unknown; ACLs are as before."""
    before = state(secured.bootstrap)
    ran = init(secured, "reader", tmp_path)

    assert ran.status == 1, ran.stderr
    assert gaps(ran) == set(), ran.stdout
    assert state(secured.bootstrap) == before
    assert before["acls"]
    [orders] = [each for each in json.loads(ran.stdout)["topics"] if each["topic"] == "orders"]
    assert orders["declared"]["total_retention_ms"] == 86_400_000
    assert PASSWORD not in (tmp_path / "seawall.toml").read_text()
    checked = run_as(secured, "reader", "policy", "check", str(tmp_path / "policy.toml"))
    assert checked.status == 0, checked.stdout


def test_without_the_right_to_describe_settings_the_rest_is_done(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    """Only Describe on topics: offsets are seen, settings and sizes said to be unknown, files written."""
    ran = init(secured, "topics-only", tmp_path)

    assert gaps(ran) == {
        "what is configured for a topic",
        "what is configured for a broker",
        "how large the replicas of a broker are",
        "who keeps the metadata",
    }
    assert "orders" in {each["topic"] for each in json.loads(ran.stdout)["topics"]}
    assert "#   orders" in (tmp_path / "policy.toml").read_text()


def test_without_any_right_nothing_is_made_up(secured: SecuredBroker, tmp_path: Path) -> None:
    """No topic is shown, and the brokers' silence is told."""
    ran = init(secured, "nobody", tmp_path)

    assert json.loads(ran.stdout)["topics"] == []
    assert "what is configured for a broker" in gaps(ran)


def test_an_observer_with_the_written_settings_tells_its_events_and_can_do_nothing_else(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    """seawall.toml as init wrote it, with the observer's rights: events come. It may not delete a thing."""
    init(secured, "reader", tmp_path)
    heard = run_agent(secured, "agent-observe", tmp_path, until=lambda: events_in(secured) > 0)

    assert events_in(secured) > 0
    assert refusals(heard) == []
    with pytest.raises(KafkaException, match="uthorization"):
        delete_records(secured, "agent-observe")
    admin = client(secured, "agent-observe")  # gone before the answer, it would cancel the request
    with pytest.raises(KafkaException, match="uthorization"):
        admin.delete_topics(["orders"])["orders"].result(ANSWER_S)


def test_an_agent_copies_with_its_own_rights_and_trims_only_with_those_for_it(
    secured: SecuredBroker, bucket: LocalBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The uploader's rights take closed segments to the bucket; DeleteRecords takes the trimmer's besides."""
    produce.create_topic(secured, "moving")
    kafka.produce(secured.bootstrap, "moving", produce.texts(500))
    init(secured, "reader", tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.address.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.address.secret_access_key)
    more = {
        "agent.observe_only": "false",
        "agent.topics": "moving",
        "agent.metadata_partitions": str(produce.METADATA_PARTITIONS),
        "s3.bucket": bucket.name,
        "s3.endpoint_url": bucket.address.endpoint_url,
        "s3.region": bucket.address.region,
        "s3.prefix": "secured",
    }

    def is_copied() -> bool:
        return any(key.endswith(".json") for key in keys_in(bucket, "secured/"))

    heard = run_agent(secured, "agent-tier", tmp_path, until=is_copied, more=more)

    assert is_copied()
    assert refusals(heard) == []
    with pytest.raises(KafkaException, match="uthorization"):
        delete_records(secured, "agent-tier")
    delete_records(secured, "agent-trim")


def run_agent(
    cluster: SecuredBroker,
    user: str,
    folder: Path,
    *,
    until: Callable[[], bool],
    more: Mapping[str, str] | None = None,
) -> Heard:
    """`seawall agent` with the seawall.toml in the folder, until something is so; or it fails."""
    changes = {"agent.listen": "127.0.0.1:0", "agent.state_dir": str(folder / user), **(more or {})}
    flags = {name: (name, value) for name, value in changes.items()}
    settings = load(file=folder / "seawall.toml", environ=login(cluster, user), flags=flags).settings
    stop, heard = Event(), Heard()
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(run, settings, World(environ={}, log=heard, stop=stop))
        try:
            wait_until(
                lambda: running.done() or until(), name=user, wanted="its work", deadline_s=WORK_DEADLINE_S
            )
        finally:
            stop.set()
        running.result(WORK_DEADLINE_S)
    return heard


def refusals(heard: Heard) -> list[tuple[str, Any]]:
    return [each for each in heard.warnings if "uthoriz" in str(each)]


def client(cluster: SecuredBroker, user: str) -> AdminClient:
    settings: dict[str, Any] = {**as_librdkafka(cluster, user)}
    return AdminClient(settings, logger=kafka.SILENT)


def delete_records(cluster: SecuredBroker, user: str) -> None:
    """Of `orders`, up to its beginning: nothing goes, and it has to be allowed all the same."""
    admin = client(cluster, user)
    admin.delete_records([TopicPartition("orders", 0, 0)])[TopicPartition("orders", 0)].result(ANSWER_S)


def keys_in(bucket: LocalBucket, prefix: str) -> list[str]:
    found = bucket.client().list_objects_v2(Bucket=bucket.name, Prefix=prefix)
    return [each["Key"] for each in found.get("Contents", ())]


class Heard:
    """A logger that keeps what is told louder than usual."""

    def __init__(self) -> None:
        self.warnings: list[tuple[str, Any]] = []

    def info(self, event: str, **_: Any) -> None:
        pass

    def warning(self, event: str, **about: Any) -> None:
        self.warnings.append((event, about))

    error = exception = warning


def events_in(cluster: SecuredBroker) -> int:
    """0, too, while the topic is being made."""
    admin = kafka.admin_client(cluster.bootstrap)
    parts = [TopicPartition(AUDIT_TOPIC, number) for number in kafka.leaders(cluster.bootstrap, AUDIT_TOPIC)]
    if not parts:
        return 0
    futures = admin.list_offsets(dict.fromkeys(parts, LATEST))
    try:
        return sum(future.result(ANSWER_S).offset for future in futures.values())
    except KafkaException:
        return 0


def test_an_operator_applies_a_policy_and_a_reader_reads_it(secured: SecuredBroker, tmp_path: Path) -> None:
    """`policy apply --confirm` takes the operator's rights; the reader sees it, and may not apply one."""
    init(secured, "reader", tmp_path)
    file = str(tmp_path / "policy.toml")
    apply = ("policy", "apply", file, "--principal", "alice", "--change-id", "OPS-1", "--confirm")

    refused = run_as(secured, "reader", *apply)
    applied = run_as(secured, "operator", *apply)

    assert refused.status in (41, 42), refused.stdout
    assert applied.status == 0, applied.stderr
    shown = run_as(secured, "reader", "policy", "show")
    assert 'total_retention_ms = "1d"' in shown.stdout


def test_a_scrub_worker_gets_tasks_and_answers_and_reads_nothing_else(secured: SecuredBroker) -> None:
    """It makes the topics, joins its group, and says what it found; an operator deals out and hears it."""
    worker, operator = as_librdkafka(secured, "scrub-worker"), as_librdkafka(secured, "operator")
    names = ensure_topics(worker)
    assert ensure_topics(operator) == names
    segment_id, got = SegmentId("a-segment"), Got()
    post, voice = KafkaPost(operator, names), KafkaVoice(worker, names)
    source = KafkaSource({**worker, "group.id": GROUP}, [names.tasks])
    with closing(post), closing(voice), closing(source):
        post.send(segment_id, "run", b"a task")
        source.open(got)
        wait_until(
            lambda: bool(source.poll(10, 0.1).records),
            name=names.tasks,
            wanted="the task",
            deadline_s=WORK_DEADLINE_S,
        )
        answer = Answer(run="run", segment_id=segment_id, worker="w", refused="a test")
        voice.say(answer)
        wait_until(
            lambda: encode_word(answer) in post.receive(0.1),
            name=names.answers,
            wanted="the answer",
            deadline_s=WORK_DEADLINE_S,
        )
    stranger = as_librdkafka(secured, "topics-only")
    with pytest.raises(SharedScrubError):
        ensure_topics(stranger)


class Got:
    """Hears of an assignment, and has nothing to do with it."""

    def assigned(self, starts: object) -> None:
        pass

    revoked = lost = committed = assigned


def test_kafkas_own_tool_takes_the_script_and_makes_the_rights_of_the_role(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    """kafka-acls itself reads the arguments: the ACLs are then those of the table."""
    role = BY_NAME["reader"]  # with a line of each sort
    tool = tmp_path / "kafka-acls"
    java = secured._java(["-Xmx96m", "-XX:TieredStopAtLevel=1"], "org.apache.kafka.tools.AclCommand", [])
    tool.write_text("#!/bin/sh\nexec " + " ".join(f"'{part}'" for part in java) + ' "$@"\n')
    tool.chmod(0o755)
    script = tmp_path / "script.sh"
    script.write_text(acls.script(role, bootstrap=secured.bootstrap, where="a test"))

    ran = subprocess.run(
        ["/bin/sh", str(script)],
        env={"KAFKA_ACLS": str(tool), "PRINCIPAL": "User:by-tool", "PATH": "/bin:/usr/bin"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout + ran.stderr
    wanted = sorted(str(each) for right in role.kafka for each in bindings_of(right, "by-tool"))
    admin = kafka.admin_client(secured.bootstrap)
    found = [each for each in acls_of(admin) or [] if "User:by-tool" in each]
    assert found == wanted
