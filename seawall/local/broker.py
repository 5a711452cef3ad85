"""Real Kafka brokers on this machine: KRaft, combined mode, one or several nodes, from the Maven jars.

Owns the nodes' folders, ports and processes. Each node can be stopped, killed, paused and started again by
itself, and keeps its ports and log dirs through that. It refuses to decide anything about topics.

What stands under `folder`:
    node-<id>/server.properties   written at every start
    node-<id>/format.log          what StorageTool printed
    node-<id>/server.log          everything the JVM printed, all runs
    node-<id>/logs[-<n>]/         the log dirs
    remote/                       with kip405: LocalTieredStorage's files, shared by all nodes
"""

from __future__ import annotations

import base64
import signal
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

from seawall.jvm.classpath import classpath
from seawall.jvm.java import find_java
from seawall.local.broker_properties import as_text, kip405_properties, node_properties
from seawall.local.errors import ServerDied
from seawall.local.jvm_options import short_lived, small_server
from seawall.local.kafka import live_broker_ids
from seawall.local.ports import ReservedPort, is_listening
from seawall.local.process import Child

START_DEADLINE_S = 60.0
STOP_GRACE_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One broker and controller: where it listens and where it keeps its files."""

    node_id: int
    folder: Path
    log_dirs: tuple[Path, ...]
    client_port: ReservedPort
    controller_port: ReservedPort
    process: Child

    @property
    def properties_file(self) -> Path:
        return self.folder / "server.properties"

    @property
    def is_formatted(self) -> bool:
        return (self.log_dirs[0] / "meta.properties").exists()


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
        self.cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.remote_folder = folder / "remote"
        self._properties = dict(properties or {})
        self._heap_mib = heap_mib
        self._java_program = str(find_java().path)
        self._classpath = classpath("broker-kip405" if kip405 else "broker")
        self.nodes: Mapping[int, Node] = {
            node_id: self._plan_node(node_id, log_dirs_per_node) for node_id in range(1, nodes + 1)
        }

    def _plan_node(self, node_id: int, log_dirs_count: int) -> Node:
        folder = self.folder / f"node-{node_id}"
        suffixes = [""] + [f"-{n}" for n in range(2, log_dirs_count + 1)]
        settings = str(folder / "server.properties")
        return Node(
            node_id=node_id,
            folder=folder,
            log_dirs=tuple(folder / f"logs{suffix}" for suffix in suffixes),
            client_port=ReservedPort(),
            controller_port=ReservedPort(),
            process=Child(
                name=f"kafka node {node_id}",
                argv=self._java(small_server(heap_mib=self._heap_mib), "kafka.Kafka", settings),
                log=folder / "server.log",
            ),
        )

    def _java(self, options: Sequence[str], main_class: str, *arguments: str) -> list[str]:
        return [self._java_program, *options, "-cp", self._classpath, main_class, *arguments]

    @property
    def bootstrap(self) -> str:
        """Every node's client address, running or not."""
        return ",".join(node.client_port.address for node in self.nodes.values())

    def bootstrap_of(self, node_id: int) -> str:
        return self.nodes[node_id].client_port.address

    def log_dirs(self, node_id: int = 1) -> tuple[Path, ...]:
        return self.nodes[node_id].log_dirs

    def start(self, *, deadline_s: float = START_DEADLINE_S) -> None:
        """Format what is not formatted, start every node that does not run, and wait for all of them."""
        fresh = [node for node in self.nodes.values() if not node.is_formatted]
        for node in self.nodes.values():
            self._write_properties(node)
        try:
            self._format(fresh, deadline_s=deadline_s)
            for node in self.nodes.values():
                node.process.start()
            self.wait_until_ready(deadline_s=deadline_s)
        except BaseException:
            # Whoever asked for a cluster and got an error has nothing to stop.
            self.kill_all()
            raise

    def _write_properties(self, node: Node) -> None:
        properties = node_properties(
            node_id=node.node_id,
            listen=node.client_port.address,
            controller_listen=node.controller_port.address,
            voters={each.node_id: each.controller_port.address for each in self.nodes.values()},
            log_dirs=node.log_dirs,
        )
        if self.kip405:
            properties |= kip405_properties(remote_folder=self.remote_folder, nodes=len(self.nodes))
        node.folder.mkdir(parents=True, exist_ok=True)
        node.properties_file.write_text(as_text(properties | self._properties), encoding="utf-8")

    def _format(self, nodes: Sequence[Node], *, deadline_s: float) -> None:
        """Write meta.properties and the bootstrap snapshot with Kafka's own tool, all nodes at once."""
        tools = [
            Child(
                name=f"format of kafka node {node.node_id}",
                argv=self._java(
                    short_lived(),
                    "kafka.tools.StorageTool",
                    *("format", "--cluster-id", self.cluster_id, "--config", str(node.properties_file)),
                ),
                log=node.folder / "format.log",
            )
            for node in nodes
        ]
        for tool in tools:
            tool.start()
        for tool in tools:
            if status := tool.wait_until_ended(deadline_s=deadline_s):
                raise ServerDied(name=tool.name, status=status, log=tool.log, last_lines=tool.last_lines())

    def restart(self, node_id: int = 1, *, deadline_s: float = START_DEADLINE_S) -> None:
        """Start a stopped or killed node on the files it left, and wait until the cluster sees it."""
        self._write_properties(self.nodes[node_id])
        self.nodes[node_id].process.start()
        self.wait_until_ready([node_id], deadline_s=deadline_s)

    def wait_until_ready(
        self, node_ids: Iterable[int] | None = None, *, deadline_s: float = START_DEADLINE_S
    ) -> None:
        """Return when these nodes (default: all) accept clients and are unfenced members."""
        wanted = frozenset(self.nodes if node_ids is None else node_ids)
        for node_id in sorted(wanted):
            node = self.nodes[node_id]
            address = node.client_port.address
            node.process.wait_until_ready(
                partial(is_listening, node.client_port.number),
                wanted=f"listening on {address}",
                deadline_s=deadline_s,
            )
            node.process.wait_until_ready(
                partial(_knows_alive, address, wanted),
                wanted=f"brokers {sorted(wanted)} known to {address} as alive",
                deadline_s=deadline_s,
            )

    def stop(self, node_id: int | None = None, *, grace_s: float = STOP_GRACE_S) -> None:
        """End a node (default: all) in order: logs flushed, clean-shutdown marker written."""
        chosen = list(self.nodes.values()) if node_id is None else [self.nodes[node_id]]
        for node in chosen:
            if node.process.is_alive:
                node.process.signal(signal.SIGCONT)
                node.process.signal(signal.SIGTERM)
        for node in chosen:
            node.process.stop(grace_s=grace_s)

    def kill(self, node_id: int = 1) -> None:
        """SIGKILL: nothing is flushed, no marker is written."""
        self.nodes[node_id].process.kill()

    def kill_all(self) -> None:
        for node in self.nodes.values():
            node.process.kill()

    def pause(self, node_id: int = 1) -> None:
        """Freeze a node: its connections stay open and nothing is answered."""
        self.nodes[node_id].process.signal(signal.SIGSTOP)

    def resume(self, node_id: int = 1) -> None:
        self.nodes[node_id].process.signal(signal.SIGCONT)

    def close(self) -> None:
        """Stop every node and give the ports back. The folder is left as it is."""
        self.stop()
        for node in self.nodes.values():
            node.client_port.release()
            node.controller_port.release()

    def __enter__(self) -> LocalCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _knows_alive(address: str, wanted: frozenset[int]) -> bool:
    return wanted <= live_broker_ids(address)
