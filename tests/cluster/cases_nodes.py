"""Hard cases that need a node to die: a torn tail, a leader change with a divergent tail, a stray folder.

Each takes `keep(name)`, which copies the cluster's log dirs as they are at that moment: the interesting
state is often the one before the broker has repaired it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from seawall.local.broker import LocalCluster
from seawall.local.kafka import delete_topic, in_sync, leaders
from seawall.local.waiting import wait_until
from tests.cluster import produce
from tests.cluster.cases_logs import partition_folder, segment_bases
from tests.cluster.produce import Writer, Written, texts, written

DEADLINE_S = 60.0
Keep = Callable[[str], None]


def killed_while_writing(cluster: LocalCluster) -> Written:
    """`killed`: SIGKILL while a client sends. What it was told is written is in the file; more may be."""
    topic = "killed"
    produce.create_topic(cluster, topic, segment_bytes=256 * 1024)
    writer = Writer(cluster, topic, "plain", {"message.timeout.ms": 60_000})
    for value in texts(20_000):
        writer.send(value)
    while len(writer.acknowledged) < 2_000:
        writer.poll(0.1)
    cluster.kill()
    return written(topic, [writer])


def torn_tails(cluster: LocalCluster, *, topics: tuple[str, ...]) -> dict[str, int]:
    """Cut the last batch of these topics' active segments short, as a power cut leaves it: the file system
    had taken a part of the last write. The broker must be dead. Returns the bytes each file lost.
    """
    lost = {}
    for number, topic in enumerate(topics):
        folder = partition_folder(cluster, topic)
        active = folder / f"{segment_bases(folder)[-1]:020d}.log"
        size_bytes = active.stat().st_size
        # Inside the records of the last batch; for the second topic inside its 61-byte header.
        keep_bytes = size_bytes - 7 if number % 2 == 0 else _last_batch_position(active) + 17
        with active.open("r+b") as file:
            file.truncate(keep_bytes)
        lost[topic] = size_bytes - keep_bytes
    return lost


def _last_batch_position(log: Path) -> int:
    """By the batch lengths: 8 bytes of base offset, then 4 bytes of how many follow."""
    content = log.read_bytes()
    position = last = 0
    while position < len(content):
        last = position
        position += 12 + int.from_bytes(content[position + 8 : position + 12], "big")
    return last


def forked(cluster: LocalCluster, keep: Keep) -> Written:
    """`forked`: the leader takes records that reach no follower, dies, and another leads from an earlier
    offset. Kept as `forked-divergent` while the dead leader still has its own version of those offsets.
    """
    topic = "forked"
    produce.create_topic(cluster, topic, replication=3)
    together = Writer(cluster, topic, "together")
    together.send_all(texts(100))
    old = leaders(cluster.bootstrap, topic)[0]
    others = [node_id for node_id in cluster.nodes if node_id != old]
    alone = Writer(cluster, topic, "alone", {"acks": 1, "bootstrap.servers": cluster.bootstrap_of(old)})
    alone.send_all(texts(1, seed=1))  # connects before the others are frozen
    _wait_for_replicas(cluster, topic, 3)
    for node_id in others:
        cluster.pause(node_id)
    # A follower's fetch may be waiting at the leader: its answer takes the first of these along.
    alone.send_all(texts(10, seed=2))
    alone.send_all(texts(30, seed=4))
    cluster.kill(old)
    for node_id in others:
        cluster.resume(node_id)
    wait_until(
        lambda: leaders(cluster.bootstrap, topic).get(0, old) != old,
        name=topic,
        wanted=f"a leader other than {old}",
        deadline_s=DEADLINE_S,
    )
    after = Writer(cluster, topic, "after")
    after.send_all(texts(60, seed=3))
    # Nothing may be written while it is copied, file by file: the controller's log is one of them.
    still = [*(cluster.nodes[node_id] for node_id in others), cluster.controller]
    for node in still:
        node.process.pause()
    keep("forked-divergent")
    for node in still:
        node.process.resume()
    cluster.restart(old)
    _wait_for_replicas(cluster, topic, 3)
    fork = min(record.offset for record in after.acknowledged)
    survived = [record for record in alone.acknowledged if record.offset < fork]
    diverged = [record for record in alone.acknowledged if record.offset >= fork]
    alone.acknowledged = survived
    notes = {"old_leader": old, "fork": fork, "lost": [record.offset for record in diverged]}
    return written(topic, [together, alone, after], notes)


def many_epochs(cluster: LocalCluster) -> Written:
    """`many-epochs`: the leader is stopped in order, again and again; each time another epoch begins.

    While a node is down the topic `strayed` is deleted: the node finds its folder at start and renames it
    to `…-stray`.
    """
    topic = "many-epochs"
    produce.create_topic(cluster, topic, replication=3)
    produce.create_topic(cluster, "strayed", replication=3)
    Writer(cluster, "strayed", "stray").send_all(texts(20))
    writer = Writer(cluster, topic, "plain")
    for turn in range(3):
        writer.send_all(texts(30, seed=turn))
        down = leaders(cluster.bootstrap, topic)[0]
        cluster.stop(down)
        if turn == 0:
            delete_topic(cluster.bootstrap, "strayed")
        writer.send_all(texts(30, seed=turn + 10))
        cluster.restart(down)
        _wait_for_replicas(cluster, topic, 3)
    return written(topic, [writer])


def _wait_for_replicas(cluster: LocalCluster, topic: str, count: int) -> None:
    wait_until(
        lambda: len(in_sync(cluster.bootstrap, topic, 0)) == count,
        name=topic,
        wanted=f"{count} replicas in sync",
        deadline_s=DEADLINE_S,
    )
