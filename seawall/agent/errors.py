"""What keeps an agent from starting, or from removing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class AgentError(SeawallError):
    """the agent cannot start, or cannot go on"""

    exit_code: ClassVar[int] = 45


@dataclass(kw_only=True, eq=False)
class NoLogDirsNamed(AgentError):
    """the agent does not know where its broker keeps its logs

    Set agent.log_dirs in seawall.toml to what log.dirs is in the broker's own file, or
    agent.server_properties to that file; or give --log-dir or --server-properties.
    """


@dataclass(kw_only=True, eq=False)
class PropertiesUnreadable(AgentError):
    """the broker's properties {path} name no log dirs: {why}"""

    path: Path
    why: str


@dataclass(kw_only=True, eq=False)
class AlreadyRunning(AgentError):
    """another agent works in {folder} (process {pid})

    One agent belongs to one broker. End the other one, or give this one a folder of its own if it belongs to
    another broker.
    """

    folder: Path
    pid: str


@dataclass(kw_only=True, eq=False)
class ForeignState(AgentError):
    """{folder} belongs to {found}, and these log dirs to {expected}

    Give each broker's agent a state folder of its own.
    """

    folder: Path
    found: str
    expected: str


@dataclass(kw_only=True, eq=False)
class WrongCluster(AgentError):
    """the log dirs belong to cluster {local}, and {bootstrap} answers as cluster {remote}

    Nothing is copied: offsets of one cluster mean nothing in another. Look at kafka.bootstrap and
    agent.log_dirs.
    """

    local: str
    remote: str
    bootstrap: str


@dataclass(kw_only=True, eq=False)
class AddressTaken(AgentError):
    """cannot listen on {address}: {why}

    Set agent.listen to another host:port; port 0 takes any that is free.
    """

    address: str
    why: str


@dataclass(kw_only=True, eq=False)
class BucketUnfit(AgentError):
    """the bucket {bucket} keeps no versions

    Turn versioning on: without it a delete is for good, and nothing can be brought back.
    """

    bucket: str


@dataclass(kw_only=True, eq=False)
class NoRoomForEvidence(AgentError):
    """nothing is removed: this disk has no room for the events that would say so

    They wait for Kafka to take them. Look at `seawall_events_pending` and at the agent's log.
    """


@dataclass(kw_only=True, eq=False)
class StorageUntold(AgentError):
    """whether broker {broker_id} has tiered storage is not known yet: {why}

    The log dirs are looked at once it has answered: what its files say of a log's start depends on it.
    """

    broker_id: int
    why: str
