"""Agents as processes of their own: one beside each broker, to be killed, frozen and started again.

Owns the processes and their folders. An agent's state folder outlives its kills, as it would on a host.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seawall.local.broker import LocalCluster
from seawall.local.ports import ReservedPort
from seawall.local.process import Child, stop_all
from seawall.local.s3 import S3Address

READY_DEADLINE_S = 60.0
PROBE_S = 2.0
STOP_GRACE_S = 30.0


class Agent:
    """One `seawall agent`."""

    def __init__(
        self,
        folder: Path,
        cluster: LocalCluster,
        node_id: int,
        settings: str,
        s3: S3Address | None,
        *,
        wrapped_in: Sequence[str] = (),
    ) -> None:
        """Without `s3` it is given no credentials: it only observes. `wrapped_in`: a program, and what comes
        before the agent's own command line, that becomes the agent."""
        self.node_id = node_id
        self._port = ReservedPort()
        self._said_before = 0  # bytes of its log
        folder.mkdir(parents=True)
        (folder / "seawall.toml").write_text(settings)
        log_dirs = ",".join(map(str, cluster.log_dirs(node_id)))
        self.process = Child(
            name=f"agent {node_id}",
            argv=[*wrapped_in, sys.executable, "-m", "seawall", "agent"],
            log=folder / "agent.log",
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("SEAWALL_")},
                "PYTHONPATH": os.pathsep.join(sys.path),
                "SEAWALL_SETTINGS": str(folder / "seawall.toml"),
                "SEAWALL_AGENT__STATE_DIR": str(folder / "state"),
                "SEAWALL_AGENT__LOG_DIRS": log_dirs,
                "SEAWALL_AGENT__LISTEN": self._port.address,
                "AWS_EC2_METADATA_DISABLED": "true",
                **({} if s3 is None else _credentials(s3)),
            },
        )

    @property
    def is_ready(self) -> bool:
        """By its own word."""
        return bool(self.probe("readyz").get("ok"))

    def page(self, page: str) -> bytes:
        """A page as it is, such as /metrics."""
        with urllib.request.urlopen(f"http://{self._port.address}/{page}", timeout=PROBE_S) as answer:
            content: bytes = answer.read()
            return content

    def probe(self, page: str) -> Mapping[str, Any]:
        """What /readyz or /healthz says; empty while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://{self._port.address}/{page}", timeout=PROBE_S) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as refused:
            return dict(json.load(refused))
        except OSError:
            return {}

    def start(self) -> None:
        log = self.process.log
        self._said_before = log.stat().st_size if log.exists() else 0
        self.process.start()

    @property
    def was_up(self) -> bool:
        """Whether it said, since it was last started, that it has started. One that could not, since no
        broker answered in time, ends and is for its supervisor to start again; one that was up never ends."""
        with self.process.log.open("rb") as log:
            log.seek(self._said_before)
            return b'"event": "started"' in log.read()

    def kill(self) -> None:
        self.process.kill()

    def revive(self) -> None:
        """Wake it, or start it again."""
        if self.process.is_alive:
            self.process.resume()
        else:
            self.start()

    def wait_until_ready(self, deadline_s: float = READY_DEADLINE_S) -> None:
        self.process.wait_until_ready(
            lambda: self.is_ready, wanted="ready by its own word", deadline_s=deadline_s
        )

    def release(self) -> None:
        self._port.release()


def _credentials(s3: S3Address) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": s3.access_key_id,
        "AWS_SECRET_ACCESS_KEY": s3.secret_access_key,
        "AWS_REGION": s3.region,
    }


@contextmanager
def agent_beside(
    cluster: LocalCluster,
    folder: Path,
    settings: str,
    s3: S3Address | None,
    node_id: int = 1,
    *,
    wrapped_in: Sequence[str] = (),
) -> Iterator[Agent]:
    """One agent, ready; killed at the end, if it did not end by itself."""
    agent = Agent(folder / "agent", cluster, node_id, settings, s3, wrapped_in=wrapped_in)
    agent.start()
    try:
        agent.wait_until_ready()
        yield agent
    finally:
        agent.kill()
        agent.release()


@contextmanager
def agents_beside(
    cluster: LocalCluster,
    folder: Path,
    settings: str,
    s3: S3Address,
    *,
    deadline_s: float = READY_DEADLINE_S,
) -> Iterator[dict[int, Agent]]:
    """An agent beside each broker, all ready; ended in order."""
    agents = {
        node_id: Agent(folder / f"agent-{node_id}", cluster, node_id, settings, s3)
        for node_id in cluster.nodes
    }
    try:
        for agent in agents.values():
            agent.start()
        for agent in agents.values():
            agent.wait_until_ready(deadline_s)
        yield agents
    finally:
        with contextlib.suppress(Exception):
            stop_all([agent.process for agent in agents.values()], grace_s=STOP_GRACE_S)
        for agent in agents.values():
            agent.kill()
            agent.release()
