"""One agent per state folder, and one broker per state folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from seawall.agent.errors import AlreadyRunning, ForeignState
from seawall.agent.lock import LOCK_NAME, locked
from tiering.cluster.interface import BrokerIdentity

BROKER = BrokerIdentity(cluster_id="c1", broker_id=7)
HOLDS = """
import sys
from pathlib import Path
from seawall.agent.lock import locked
from tiering.cluster.interface import BrokerIdentity
with locked(Path(sys.argv[1]), BrokerIdentity(cluster_id="c1", broker_id=7)):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_second_agent_is_refused_and_the_first_is_named(tmp_path: Path) -> None:
    """A folder in use is refused with the process that uses it; afterwards it can be had."""
    with (
        locked(tmp_path, BROKER),
        pytest.raises(AlreadyRunning, match=str(os.getpid())),
        locked(tmp_path, BROKER),
    ):
        raise AssertionError

    with locked(tmp_path, BROKER):
        assert (tmp_path / LOCK_NAME).exists()


def test_killed_agent_leaves_no_lock(tmp_path: Path) -> None:
    """The kernel lets go when the process ends, even by kill -9."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDS, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    with holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRunning, match=str(holder.pid)), locked(tmp_path, BROKER):
            raise AssertionError
        holder.kill()

    with locked(tmp_path, BROKER):
        assert holder.returncode == -9


def test_folder_of_another_broker_is_refused(tmp_path: Path) -> None:
    """A folder says whose it is; a copied configuration does not mix two brokers' states."""
    with locked(tmp_path, BROKER):
        pass

    other = BrokerIdentity(cluster_id="c1", broker_id=8)
    with pytest.raises(ForeignState, match="broker 7 of cluster c1"), locked(tmp_path, other):
        raise AssertionError


def test_half_written_lock_file_is_no_hindrance(tmp_path: Path) -> None:
    """An agent that died while it wrote its name keeps nobody out."""
    (tmp_path / LOCK_NAME).write_bytes(b'{"pid": 1')

    with locked(tmp_path, BROKER):
        assert b"c1" in (tmp_path / LOCK_NAME).read_bytes()
