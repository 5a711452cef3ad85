"""One Kafka node on this machine: its files, its ports, its process. LocalCluster decides what it is told.

<folder>/server.properties   written at every start
<folder>/format.log          what StorageTool printed
<folder>/server.log          everything the JVM printed, all runs
<folder>/logs[-<n>]/         the log dirs
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from seawall.local.broker_properties import as_text
from seawall.local.errors import ServerDied
from seawall.local.jvm_options import short_lived, small_server
from seawall.local.ports import ReservedPort, is_listening
from seawall.local.process import Child

Java = Callable[[Sequence[str], str, Sequence[str]], list[str]]
"""The command line for JVM options, a main class and its arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A broker has a `client_port`, a controller a `controller_port`; a combined node has both."""

    node_id: int
    folder: Path
    log_dirs: tuple[Path, ...]
    client_port: ReservedPort | None
    controller_port: ReservedPort | None
    process: Child
    format_command: tuple[str, ...]

    @property
    def is_formatted(self) -> bool:
        return (self.log_dirs[0] / "meta.properties").exists()

    @property
    def address(self) -> str:
        """Where it is spoken to first."""
        port = self.client_port or self.controller_port
        assert port is not None
        return port.address

    def write_properties(self, properties: Mapping[str, str]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "server.properties").write_text(as_text(properties), encoding="utf-8")

    def wait_until_listening(self, *, deadline_s: float) -> None:
        for port in (self.controller_port, self.client_port):
            if port is not None:
                self.process.wait_until_ready(
                    partial(is_listening, port.number),
                    wanted=f"listening on {port.address}",
                    deadline_s=deadline_s,
                )

    def release_ports(self) -> None:
        for port in (self.client_port, self.controller_port):
            if port is not None:
                port.release()


def plan_node(
    node_id: int,
    folder: Path,
    *,
    is_broker: bool,
    is_controller: bool,
    log_dirs: int,
    heap_mib: int,
    cluster_id: str,
    java: Java,
) -> Node:
    """A node that does not run yet; its ports are reserved from here on."""
    settings = str(folder / "server.properties")
    suffixes = ["", *(f"-{n}" for n in range(2, log_dirs + 1))]
    format_arguments = ["format", "--cluster-id", cluster_id, "--config", settings]
    return Node(
        node_id=node_id,
        folder=folder,
        log_dirs=tuple(folder / f"logs{suffix}" for suffix in suffixes),
        client_port=ReservedPort() if is_broker else None,
        controller_port=ReservedPort() if is_controller else None,
        process=Child(
            name=f"kafka node {node_id}",
            argv=java(small_server(heap_mib=heap_mib), "kafka.Kafka", [settings]),
            log=folder / "server.log",
        ),
        format_command=tuple(java(short_lived(), "kafka.tools.StorageTool", format_arguments)),
    )


def format_storage(nodes: Sequence[Node], *, deadline_s: float) -> None:
    """Write meta.properties and the bootstrap snapshot with Kafka's own tool, all nodes at once."""
    tools = [
        Child(
            name=f"format of kafka node {node.node_id}",
            argv=node.format_command,
            log=node.folder / "format.log",
        )
        for node in nodes
    ]
    for tool in tools:
        tool.start()
    for tool in tools:
        if status := tool.wait_until_ended(deadline_s=deadline_s):
            raise ServerDied(name=tool.name, status=status, log=tool.log, last_lines=tool.last_lines())
