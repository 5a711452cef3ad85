"""Fault 17 from the disk to the remedy: seen by real agents, judged, told, and kept from leading in time.

Judged here by the machine itself, over the log's own events; no Spark.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import pytest
from pyspark.sql import SparkSession

from audit_engine.alerts.news import Changed
from audit_engine.run.outcomes import told as as_json
from audit_engine.wire import Envelope, decode
from rules.events import Event
from rules.machine import Speaker, Told, concerns, fold, newborn
from rules.machine.verdict import judge
from seawall.events.kafka import hear
from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.audit_engine.alerts.news import Clock, Runs, deliverer, endpoint, run
from tests.audit_engine.alerts.receiver import receiver
from tests.audit_engine.whole_path.audited import QUICK_AGENT, QUICK_DELETES, QUICK_TERMS, Audited
from tests.cluster.disks import put_start
from tests.cluster.elections import elect_preferred
from tests.cluster.produce import QUICK_HOUSEKEEPING
from tests.faults.agents import agents_beside
from tests.faults.test_whole_system import settings_of
from tests.seawall.cli.calling import call
from tests.seawall.holds.cases import first_local
from tests.seawall.remedies.test_on_three_nodes import bases, described

TOPIC = "corrupt"
BROKERS = [3, 1, 2]  # the preferred one comes back with another start
COUNT = 120
RUNS_MAX = 6  # until the replica was seen in sync again, on whole evidence
PREFIX = "corrupt-follower"

Finding = dict[str, Any]


class Judge(Protocol):
    """Finds by what agents told, and tells people."""

    def findings(self) -> list[Finding]:
        """Of the topic's log, as of now."""

    def alert(self, finding: Finding) -> bytes:
        """The body that a receiver got of it."""


@contextmanager
def watched(bucket: LocalBucket, folder: Path, spark: SparkSession | None) -> Iterator[Audited]:
    """Three brokers, whose controller elects nobody by itself, each with its agent. Without Spark no run."""
    properties = {**QUICK_HOUSEKEEPING, **QUICK_DELETES, "auto.leader.rebalance.enable": "false"}
    with LocalCluster(folder / "cluster", nodes=3, properties=properties) as cluster:
        settings = settings_of(cluster, bucket.address.endpoint_url, bucket.name, PREFIX, "ours-*")
        with agents_beside(cluster, folder, settings + QUICK_AGENT, bucket.address) as agents:
            yield Audited(
                cluster=cluster, agents=agents, spark=cast("SparkSession", spark), folder=folder / "audit"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ByMachine:
    """The log's events as they lie in the topic, folded and judged; one message of what was found."""

    audited: Audited

    def findings(self) -> list[Finding]:
        audited = self.audited
        audited.wait_until_told()
        as_of_ms = time.time_ns() // 1_000_000
        audited.wait_until_told()
        [log] = audited.logs(TOPIC)
        heard = hear({"bootstrap.servers": audited.cluster.bootstrap}, since_ms=0)
        said = [_said(decode(each.value)) for each in heard]
        of_log = [each for each in said if each.event is not None and concerns(each.event, log, TOPIC)]
        state = fold(newborn(log, TOPIC), of_log, QUICK_TERMS, as_of_ms=as_of_ms)
        return [as_json(each) for each in judge(state, QUICK_TERMS, from_ms=as_of_ms).findings]

    def alert(self, finding: Finding) -> bytes:
        with receiver() as receiving:
            ours = deliverer(self.audited.folder, endpoint(receiving.url), clock=Clock())
            ours.take_in(Runs(run(1, Changed(change="opened", finding=finding))))
            ours.deliver()
            [came] = receiving.taken
        return came.body


def _said(heard: Envelope) -> Told:
    event = heard.event if isinstance(heard.event, Event) else None
    return Told(
        event=event,
        speaker=Speaker(*heard.emitter),
        seq=heard.emitter_seq,
        log_seq=heard.log_seq,
        observed_at_ms=heard.observed_at_ms,
    )


@pytest.mark.long
@pytest.mark.timeout(1800)  # brokers and agents that stop and come back
def test_a_corrupt_follower_is_found_told_and_kept_from_leading(bucket: LocalBucket, tmp_path: Path) -> None:
    """The machine finds START-04 in what agents saw; its alert names the broker; remediate, given that alert,
    puts the replica last: a preferred election takes another, and nothing is lost. It is found as long as the
    replica stands; once its directory is taken away, as the last step says, it copies the leader's: over."""
    with watched(bucket, tmp_path, None) as audited:
        is_kept_from_leading(audited, ByMachine(audited=audited), tmp_path)


def is_kept_from_leading(audited: Audited, by: Judge, folder: Path) -> None:
    cluster = audited.cluster
    audited.create(TOPIC, BROKERS)
    audited.fill(TOPIC, COUNT)
    audited.restart_agents()
    start = audited.closed(TOPIC, 3)[4][0]
    with audited.stopped(3) as log_dir:
        put_start(log_dir, TOPIC, start)
    in_sync = partial(audited.is_in_sync, TOPIC, BROKERS)
    audited.wait(in_sync, TOPIC, "all replicas in sync")
    finding = critical(by)
    assert (finding["rule_id"], finding["ranges"]) == ("START-04", [[0, start]])
    assert finding["subject"].endswith("/0/replica 3")

    alert = folder / "alert.json"
    alert.write_bytes(by.alert(finding))
    [told] = json.loads(alert.read_bytes())["data"]["findings"]
    assert told["finding_id"] == finding["finding_id"]
    assert "does not keep broker 3 from being elected" in told["not_stopped_by_hold"]
    environ = {"XDG_STATE_HOME": str(folder), "SEAWALL_KAFKA__BOOTSTRAP": cluster.bootstrap}
    called = call(
        *("remediate", finding["finding_id"], "--from-file", str(alert), "--confirm", "--json"),
        environ=environ,
    )
    steps = {each["act"]: each for each in json.loads(called.stdout)["steps"]}

    assert steps["keep_out"]["is_done"], called.stderr
    assert "take its directory" in steps["stop"]["says"]
    assert described(cluster, TOPIC).partitions[0].replicas == (1, 2, 3)
    elect_preferred(cluster, TOPIC)
    audited.fill(TOPIC, 1)  # a follower in a fetch session hears of a start with the next record only
    assert audited.leader(TOPIC) == 1
    assert first_local(cluster, TOPIC) == 0
    assert [bases(cluster, TOPIC, broker)[0] for broker in (1, 2)] == [0, 0]
    assert critical(by)["finding_id"] == finding["finding_id"]

    with audited.stopped(3) as log_dir:
        shutil.move(log_dir / f"{TOPIC}-0", folder / "evidence")
    audited.wait(in_sync, TOPIC, "all replicas in sync")
    audited.wait(lambda: bases(cluster, TOPIC, 3)[:1] == [0], TOPIC, "the leader's log on broker 3")
    assert ended(by, finding["finding_id"]) == "resolved"
    assert kafka.in_sync(cluster.bootstrap, TOPIC, 0) == frozenset(BROKERS)


def critical(by: Judge) -> Finding:
    """The one that is open of the log, once it is critical: until it was seen in sync it is an error."""
    for _ in range(RUNS_MAX):
        found = [each for each in by.findings() if each["status"] == "open"]
        if any(each["severity"] == "C" for each in found):
            [only] = found
            return only
    raise AssertionError(f"nothing critical in {RUNS_MAX} runs: {found}")


def ended(by: Judge, finding_id: str) -> str:
    """How a finding ends, once its replica is seen to begin where the leader does."""
    for _ in range(RUNS_MAX):
        [found] = [each for each in by.findings() if each["finding_id"] == finding_id]
        if found["status"] != "open":
            return str(found["status"])
    raise AssertionError(f"open still after {RUNS_MAX} runs: {found}")
