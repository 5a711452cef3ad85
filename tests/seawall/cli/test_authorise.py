"""`seawall authorise` as a user runs it, on a real broker: what is said, and what would count for nothing."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from audit_engine.topic.kafka import ensure_audit_topic
from audit_engine.wire import decode
from rules.events import EmitterClosed, Heartbeat, Operation, OperationAuthorised
from rules.policy import EMPTY
from seawall.authorise import Asked, refuse
from seawall.authorise.errors import AuthorisationRefused, NobodyNeedsTo, TooLate
from seawall.events.kafka import hear
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.policy.change_log.kafka import TOPIC as POLICY_TOPIC
from tests.seawall.cli.calling import Called, call

Seawall = Callable[..., Called]
WHO = ("--principal", "alice", "--change-id", "CHG-7", "--reason", "test data", "--for", "2h")
NOW_MS = 1_900_000_000_000


@pytest.fixture
def topic(broker: LocalCluster) -> Iterator[str]:
    """A topic of this test alone, of two partitions; no policy before or after."""
    name = f"authorise-{uuid.uuid4().hex[:8]}"
    _forget_policy(broker)
    kafka.create_topic(broker.bootstrap, name, partitions=2)
    ensure_audit_topic({"bootstrap.servers": broker.bootstrap})
    yield name
    _forget_policy(broker)


def _forget_policy(broker: LocalCluster) -> None:
    if kafka.leaders(broker.bootstrap, POLICY_TOPIC):
        kafka.delete_topic(broker.bootstrap, POLICY_TOPIC)


@pytest.fixture
def seawall(broker: LocalCluster, tmp_path: Path) -> Seawall:
    environ = {"SEAWALL_KAFKA__BOOTSTRAP": broker.bootstrap, "XDG_STATE_HOME": str(tmp_path)}
    return lambda *arguments: call(*arguments, environ=environ)


def heard(broker: LocalCluster, topic: str) -> list[OperationAuthorised]:
    """What the topic of events holds of it."""
    every = (decode(each.value).event for each in hear({"bootstrap.servers": broker.bootstrap}, since_ms=0))
    return [each for each in every if isinstance(each, OperationAuthorised) and each.topic == topic]


def test_what_is_authorised_is_at_the_topic_of_events(
    broker: LocalCluster, topic: str, seawall: Seawall
) -> None:
    """With its range, its time, who and why, of the topic that has the name now; nothing before --confirm.
    The run says behind it how many events it had."""
    shown = seawall("authorise", "records", f"{topic}:1", "--from", "10", "--to", "500", *WHO)
    before = heard(broker, topic)
    records = seawall("authorise", "records", f"{topic}:1", "--from", "10", "--to", "500", *WHO, "--confirm")
    whole = seawall("authorise", "topic", topic, *WHO, "--confirm", "--json")

    assert (shown.status, records.status, whole.status) == (0, 0, 0), records.stderr + whole.stderr
    assert before == []
    assert "nothing was authorised" in shown.stderr
    one, other = sorted(heard(broker, topic), key=lambda each: each.occurred_at_ms)
    assert (one.operation, one.partition, one.start_offset, one.end_offset) == (
        Operation.DELETE_RECORDS,
        1,
        10,
        500,
    )
    assert (one.principal, one.change_id, one.reason) == ("alice", "CHG-7", "test data")
    assert one.expires_at_ms - one.valid_from_ms == 2 * 3_600_000
    assert (other.operation, other.partition, other.end_offset) == (Operation.DELETE_TOPIC, None, None)
    assert one.topic_id == other.topic_id == json.loads(whole.stdout)["topic_id"]
    assert other.event_id == json.loads(whole.stdout)["event_id"]
    said = [decode(each.value) for each in hear({"bootstrap.servers": broker.bootstrap}, since_ms=0)]
    [own] = [each for each in said if each.event == other]
    run = sorted((each for each in said if each.emitter == own.emitter), key=lambda each: each.emitter_seq)
    assert [type(each.event) for each in run] == [OperationAuthorised, Heartbeat, EmitterClosed]
    assert run[-1].event.event_count == run[-1].emitter_seq == 2  # type: ignore[union-attr]


def test_a_word_that_would_count_for_nothing_is_refused(
    broker: LocalCluster, topic: str, seawall: Seawall, tmp_path: Path
) -> None:
    """Of whom the policy in force does not name, of what it never allows, of a topic that is not there."""
    file = tmp_path / "policy.toml"
    file.write_text(f'version = 1\n[topics."{topic}"]\nauthorisers = ["bob"]\ntopic_deletion = "never"\n')
    declared = ("--principal", "alice", "--change-id", "T", "--confirm")
    assert seawall("policy", "apply", str(file), *declared).status == 0

    stranger = seawall("authorise", "records", topic, "--to-end", *WHO, "--confirm")
    never = seawall("authorise", "topic", topic, *WHO, "--confirm")
    missing = seawall("authorise", "topic", "no-such-topic", *WHO, "--confirm")

    assert {each.status for each in (stranger, never, missing)} == {AuthorisationRefused.exit_code}
    assert "alice may not authorise deletions" in stranger.stderr
    assert 'topic_deletion = "never"' in never.stderr
    assert "--topic-id" in missing.stderr
    assert heard(broker, topic) == []


def _asked(topic: str, *, from_ms: int) -> Asked:
    return Asked(
        operation=Operation.DELETE_RECORDS,
        principal="alice",
        change_id="CHG-7",
        reason="test data",
        topic=topic,
        topic_id="T1",
        partition=None,
        start_offset=0,
        end_offset=None,
        valid_from_ms=from_ms,
        expires_at_ms=NOW_MS + 1,
    )


def test_what_was_done_is_allowed_within_the_grace_alone() -> None:
    """An hour unless the policy says otherwise; and what anybody may do, nobody has to allow."""
    policy = EMPTY.effective("orders")

    refuse(_asked("orders", from_ms=NOW_MS - policy.declare_grace_ms), policy, now_ms=NOW_MS)
    with pytest.raises(TooLate):
        refuse(_asked("orders", from_ms=NOW_MS - policy.declare_grace_ms - 1), policy, now_ms=NOW_MS)
    with pytest.raises(NobodyNeedsTo):
        refuse(_asked("a-repartition", from_ms=NOW_MS), EMPTY.effective("a-repartition"), now_ms=NOW_MS)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("records", "t:0", *WHO), "one of --to and --to-end"),
        (("records", "t:x", "--to", "5", *WHO), "TOPIC:PARTITION"),
        (("records", "t:0", "--from", "5", "--to", "5", *WHO), "the range is empty"),
        (("topic", "t", *WHO[:-1], "40d"), "at most 31d"),
        (("topic", "t", *WHO[:-1], "soon"), "a length of time"),
        (("topic", "t", *WHO, "--since", "2999-01-01"), "still to come"),
        (("topic", "t", *WHO[:5], " ", *WHO[6:]), "a line of"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anybody_is_asked(arguments: tuple[str, ...], why: str) -> None:
    """With what is wrong, and 2."""
    outcome = call("authorise", *arguments)

    assert outcome.status == 2
    assert why in re.sub(r"[\s│]+", " ", outcome.stderr)
