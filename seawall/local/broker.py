"""Real Kafka brokers on this machine, from the Maven jars: a KRaft cluster of one or several brokers.

Owns the nodes' folders, ports and processes. Each broker can be stopped, killed, paused and started again by
itself, and keeps its ports and log dirs through that. It refuses to decide anything about topics.

One broker is its own controller (combined mode). Several get a controller of their own beside them, so that
any number of brokers can be down and the rest still elect leaders, and so that all can be stopped in order:
in combined mode the last of three would wait for a majority that is gone.

Under the cluster's folder: node-<id>/ (see node.py), controller/, and with kip405 remote/, the files of
LocalTieredStorage.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

from seawall.jvm.classpath import classpath
from seawall.jvm.java import find_java
from seawall.local.broker_properties import kip405_properties, node_properties
from seawall.local.kafka import live_broker_ids
from seawall.local.node import Node, format_storage, plan_node
from seawall.local.process import stop_all

START_DEADLINE_S = 60.0
STOP_GRACE_S = 20.0
CONTROLLER_ID = 100
CONTROLLER_HEAP_MIB = 256


class LocalCluster:
    """Brokers 1..nodes. `properties` are server.properties entries that override ours."""

    def __init__(
        self,
        folder: Path,
        *,
        nodes: int = 1,
        kip405: bool = False,
        log_dirs_per_node: int = 1,
        properties: Mapping[str, str] | None = None,
        heap_mib: int = 384,
    ) -> None:
        self.folder = folder
        self.kip405 = kip405
        self.cluster_id = _new_cluster_id()
        self.remote_folder = folder / "remote"
        self._properties = dict(properties or {})
        self._java_program = str(find_java().path)
        self._classpath = classpath("broker-kip405" if kip405 else "broker")
        combined = nodes == 1
        plan = partial(plan_node, cluster_id=self.cluster_id, java=self._java)
        self.nodes: Mapping[int, Node] = {
            node_id: plan(
                node_id,
                folder / f"node-{node_id}",
                is_broker=True,
                is_controller=combined,
                log_dirs=log_dirs_per_node,
                heap_mib=heap_mib,
            )
            for node_id in range(1, nodes + 1)
        }
        self.controller: Node = (
            self.nodes[1]
            if combined
            else plan(
                CONTROLLER_ID,
                folder / "controller",
                is_broker=False,
                is_controller=True,
                log_dirs=1,
                heap_mib=CONTROLLER_HEAP_MIB,
            )
        )

    def _java(self, options: Sequence[str], main_class: str, arguments: Sequence[str]) -> list[str]:
        return [self._java_program, *options, "-cp", self._classpath, main_class, *arguments]

    @property
    def _everyone(self) -> list[Node]:
        """The brokers, and last the controller."""
        separate = self.controller.node_id not in self.nodes
        return [*self.nodes.values(), *([self.controller] if separate else [])]

    @property
    def bootstrap(self) -> str:
        """Every broker's address, running or not."""
        return ",".join(node.address for node in self.nodes.values())

    def bootstrap_of(self, node_id: int) -> str:
        return self.nodes[node_id].address

    def log_dirs(self, node_id: int = 1) -> tuple[Path, ...]:
        return self.nodes[node_id].log_dirs

    def start(self, *, deadline_s: float = START_DEADLINE_S) -> None:
        """Format what is not formatted, start every node that does not run, and wait for all of them."""
        for node in self._everyone:
            node.write_properties(self._properties_of(node))
        try:
            fresh = [node for node in self._everyone if not node.is_formatted]
            format_storage(fresh, deadline_s=deadline_s)
            for node in self._everyone:
                node.process.start()
            self.wait_until_ready(deadline_s=deadline_s)
        except BaseException:
            # Whoever asked for a cluster and got an error has nothing to stop.
            self.kill_all()
            raise

    def _properties_of(self, node: Node) -> dict[str, str]:
        assert self.controller.controller_port is not None
        properties = node_properties(
            node_id=node.node_id,
            listen=node.client_port.address if node.client_port else None,
            controller_listen=node.controller_port.address if node.controller_port else None,
            voters={self.controller.node_id: self.controller.controller_port.address},
            log_dirs=node.log_dirs,
            brokers=len(self.nodes),
        )
        if self.kip405 and node.client_port is not None:
            properties |= kip405_properties(remote_folder=self.remote_folder, brokers=len(self.nodes))
        return properties | self._properties

    def restart(self, node_id: int = 1, *, deadline_s: float = START_DEADLINE_S) -> None:
        """Start a stopped or killed broker on the files it left, and wait until the cluster sees it.

        After a kill that takes until the broker's old session has run out (broker.session.timeout.ms).
        """
        node = self.nodes[node_id]
        node.write_properties(self._properties_of(node))
        node.process.start()
        self.wait_until_ready([node_id], deadline_s=deadline_s)

    def revive(self, *, deadline_s: float = START_DEADLINE_S) -> None:
        """Wake every paused node, start every dead one; nothing to wait for if all were alive."""
        dead = [node for node in self._everyone if not node.process.is_alive]
        for node in self._everyone:
            if node in dead:
                node.process.start()
            else:
                node.process.resume()
        if dead:
            self.wait_until_ready(deadline_s=deadline_s)

    def wait_until_ready(
        self, node_ids: Iterable[int] | None = None, *, deadline_s: float = START_DEADLINE_S
    ) -> None:
        """Return when these brokers (default: all) accept clients and are unfenced members."""
        wanted = frozenset(self.nodes if node_ids is None else node_ids)
        for node in [self.controller, *(self.nodes[node_id] for node_id in sorted(wanted))]:
            node.wait_until_listening(deadline_s=deadline_s)
        for node_id in sorted(wanted):
            node = self.nodes[node_id]
            node.process.wait_until_ready(
                partial(_knows_alive, node.address, wanted),
                wanted=f"brokers {sorted(wanted)} known to {node.address} as alive",
                deadline_s=deadline_s,
            )

    def stop(self, node_id: int | None = None, *, grace_s: float = STOP_GRACE_S) -> None:
        """End a broker (default: all, then the controller) in order: logs flushed, marker written."""
        if node_id is not None:
            self.nodes[node_id].process.stop(grace_s=grace_s)
            return
        stop_all([node.process for node in self.nodes.values()], grace_s=grace_s)
        self.controller.process.stop(grace_s=grace_s)

    def kill(self, node_id: int = 1) -> None:
        """SIGKILL: nothing is flushed, no marker is written."""
        self.nodes[node_id].process.kill()

    def kill_all(self) -> None:
        for node in self._everyone:
            node.process.kill()

    def pause(self, node_id: int = 1) -> None:
        """Freeze a broker: its connections stay open and nothing is answered."""
        self.nodes[node_id].process.pause()

    def resume(self, node_id: int = 1) -> None:
        self.nodes[node_id].process.resume()

    def close(self) -> None:
        """Stop every node and give the ports back. The folder is left as it is."""
        self.stop()
        for node in self._everyone:
            node.release_ports()

    def __enter__(self) -> LocalCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _new_cluster_id() -> str:
    """As Kafka makes them: never with a dash in front, which its own tools would take for an option."""
    while True:
        found = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not found.startswith("-"):
            return found


def _knows_alive(address: str, wanted: frozenset[int]) -> bool:
    return wanted <= live_broker_ids(address)
