"""What goes wrong, and when: rounds of faults drawn from a seed, each of which is over when it ends.

A round strikes a broker, an agent and the way to S3 together, lets the producer go on through that, and puts
everything right again, so that no more than one broker is down at a time: acks=all with two of three in sync
is what the ledger's promise rests on.

    killed      SIGKILL, and a start on the files that were left
    frozen      SIGSTOP for longer than the cluster waits, then on from where it stood: a leader, or an agent
                in the middle of a copy, that wakes up deposed
    moved       back to the first replica, by an election, while both live
    both        a broker and the agent beside it at once, as when the host goes
    cut off     an agent killed in the middle of whatever S3 does to it
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from confluent_kafka import ElectionType, KafkaException
from confluent_kafka import TopicPartition as ClientPartition

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from seawall.local.waiting import wait_until
from tests.faults.agents import Agent
from tests.faults.ledger import Ledger
from tests.faults.s3_trouble import S3Trouble

DEADLINE_S = 90.0
RECORDS_UNDER_FAULT = 500
RECORDS_WHILE_AWAY = 200
SHARES = (0.05, 0.15, 0.3)  # of all requests to S3


@dataclass(slots=True, kw_only=True)
class Scene:
    """Everything that can be struck. `told` is what was done, in words."""

    cluster: LocalCluster
    agents: dict[int, Agent]
    s3: S3Trouble
    ledger: Ledger
    chance: random.Random
    told: list[str] = field(default_factory=list)
    began_s: float = field(default_factory=time.monotonic)

    def account(self) -> str:
        """All that was done, for whoever has to understand a failure."""
        return "\n".join([*self.told, self.s3.summary()])

    def tell(self, what: str) -> None:
        passed_s = time.monotonic() - self.began_s
        self.told.append(f"{passed_s:5.1f} s, {self.ledger.count} records: {what}")


Round: TypeAlias = Callable[[Scene], AbstractContextManager[None]]


def strike(scene: Scene, host_round: Round) -> None:
    """One round."""
    chance = scene.chance
    supervise(scene)
    with ExitStack() as stack:
        stack.enter_context(chance.choice(S3_ROUNDS)(scene))
        stack.enter_context(host_round(scene))
        assert scene.ledger.grows_by(RECORDS_UNDER_FAULT, deadline_s=DEADLINE_S), (
            "nothing is produced any more"
        )
    scene.tell("all is well again")
    wait_until_in_sync(scene)
    move_leaders(scene)


def supervise(scene: Scene) -> None:
    """Start again what could not start, as systemd would; what was up and ended is a defect."""
    for agent in scene.agents.values():
        if not agent.process.is_alive:
            assert not agent.was_up, f"{agent.process.name} ended by itself:\n{agent.process.last_lines()}"
            scene.tell(f"agent {agent.node_id} could not start, and is started again")
            agent.start()


@contextmanager
def s3_away(scene: Scene) -> Iterator[None]:
    """Refuses everybody for a while, and is flaky afterwards."""
    scene.tell("S3 refuses connections")
    with scene.s3.refusing():
        scene.ledger.grows_by(RECORDS_WHILE_AWAY, deadline_s=DEADLINE_S)
    with s3_flaky(scene):
        yield


@contextmanager
def s3_flaky(scene: Scene) -> Iterator[None]:
    share = scene.chance.choice(SHARES)
    scene.tell(f"S3 breaks {share:.0%} of all requests")
    with scene.s3.breaking(share):
        yield


@contextmanager
def broker_killed(scene: Scene) -> Iterator[None]:
    node_id = _any_broker(scene)
    scene.tell(f"broker {node_id} is killed")
    scene.cluster.kill(node_id)
    yield
    scene.cluster.restart(node_id, deadline_s=DEADLINE_S)


@contextmanager
def broker_frozen(scene: Scene) -> Iterator[None]:
    node_id = _any_broker(scene)
    scene.tell(f"broker {node_id} is frozen")
    scene.cluster.pause(node_id)
    yield
    scene.cluster.resume(node_id)


@contextmanager
def agent_killed(scene: Scene) -> Iterator[None]:
    agent = _any_agent(scene)
    scene.tell(f"agent {agent.node_id} is killed")
    agent.kill()
    yield
    agent.revive()


@contextmanager
def agents_killed_again_and_again(scene: Scene) -> Iterator[None]:
    """Each at some step of whatever it does."""
    for _ in range(3):
        agent = _any_agent(scene)
        scene.ledger.grows_by(scene.chance.randint(1, 400), deadline_s=DEADLINE_S)
        scene.tell(f"agent {agent.node_id} is killed and started")
        agent.kill()
        agent.start()
    yield


@contextmanager
def agent_frozen_while_its_leader_goes(scene: Scene) -> Iterator[None]:
    node_id = _any_broker(scene)
    scene.tell(f"agent {node_id} is frozen, and broker {node_id} is killed")
    scene.agents[node_id].process.pause()
    scene.cluster.kill(node_id)
    yield
    scene.cluster.restart(node_id, deadline_s=DEADLINE_S)
    scene.agents[node_id].revive()


@contextmanager
def host_gone(scene: Scene) -> Iterator[None]:
    node_id = _any_broker(scene)
    scene.tell(f"broker {node_id} and its agent are killed")
    scene.agents[node_id].kill()
    scene.cluster.kill(node_id)
    yield
    scene.cluster.restart(node_id, deadline_s=DEADLINE_S)
    scene.agents[node_id].revive()


S3_ROUNDS: tuple[Round, ...] = (s3_away, s3_flaky, s3_flaky)
HOST_ROUNDS: tuple[Round, ...] = (
    broker_killed,
    broker_frozen,
    agent_killed,
    agents_killed_again_and_again,
    agent_frozen_while_its_leader_goes,
    host_gone,
)


def _any_broker(scene: Scene) -> int:
    return scene.chance.choice(sorted(scene.cluster.nodes))


def _any_agent(scene: Scene) -> Agent:
    return scene.agents[_any_broker(scene)]


def wait_until_in_sync(scene: Scene) -> None:
    """Every replica of every partition: the next round may take any broker."""
    everyone = frozenset(scene.cluster.nodes)
    partitions = kafka.leaders(scene.cluster.bootstrap, scene.ledger.topic)

    def in_sync() -> bool:
        return all(
            kafka.in_sync(scene.cluster.bootstrap, scene.ledger.topic, each) == everyone
            for each in partitions
        )

    wait_until(in_sync, name=scene.ledger.topic, wanted="all replicas in sync", deadline_s=DEADLINE_S)


def move_leaders(scene: Scene) -> None:
    """Back to each partition's first replica, wherever another leads."""
    admin = kafka.admin_client(scene.cluster.bootstrap)
    partitions = kafka.leaders(scene.cluster.bootstrap, scene.ledger.topic)
    wanted = [ClientPartition(scene.ledger.topic, each) for each in partitions]
    scene.tell("leaders are moved back")
    try:
        admin.elect_leaders(ElectionType.PREFERRED, wanted).result(DEADLINE_S)
    except KafkaException:
        scene.tell("the election was refused")
