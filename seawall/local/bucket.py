"""An S3 bucket on this machine: moto in a child process, with versions, object lock and checked checksums.

Owns the process and its port. What is in the bucket lives in that process's memory: `outage` makes the
server unreachable and keeps it, `kill` loses it, and a restart begins with an empty bucket.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from seawall.local.errors import ExtraMissing
from seawall.local.ports import ReservedPort, is_listening
from seawall.local.process import Child
from seawall.local.s3 import S3Address, connect, make_bucket
from seawall.local.waiting import wait_until

if TYPE_CHECKING:
    from types_boto3_s3 import S3Client

START_DEADLINE_S = 60.0


class LocalBucket:
    """One server with one bucket."""

    def __init__(self, folder: Path, *, name: str = "seawall") -> None:
        if importlib.util.find_spec("moto") is None:
            raise ExtraMissing(name="the embedded S3 server", package="moto", extra="demo")
        self._port = ReservedPort()
        self.address = S3Address(endpoint_url=f"http://{self._port.address}", bucket=name)
        self._process = Child(
            name="S3 server",
            argv=[sys.executable, "-m", "seawall.local.moto_server", str(self._port.number)],
            log=folder / "s3.log",
            # The child has to find the package that we are, also where it is not installed.
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )

    @property
    def name(self) -> str:
        return self.address.bucket

    def client(self) -> S3Client:
        return connect(self.address)

    def start(self, *, deadline_s: float = START_DEADLINE_S) -> None:
        """Start the server if it does not run, and make the bucket; returns when it answers."""
        if self._process.is_alive:
            return
        self._process.start()
        try:
            self._process.wait_until_ready(
                partial(is_listening, self._port.number),
                wanted=f"listening on {self._port.address}",
                deadline_s=deadline_s,
            )
            make_bucket(self.address)
        except BaseException:
            self._process.kill()
            raise

    def kill(self) -> None:
        """SIGKILL: every object is gone."""
        self._process.kill()

    def restart(self) -> None:
        """After a kill: a server at the same address with an empty bucket."""
        self.kill()
        self.start()

    def revive(self) -> None:
        """Start a dead server; a living one is woken and left alone."""
        if self._process.is_alive:
            self._process.resume()
        else:
            self.start()

    @contextmanager
    def outage(self) -> Iterator[None]:
        """Connections are refused inside, and everything is there again afterwards."""
        self._process.send(signal.SIGUSR1)
        self._wait_for_port(listening=False)
        try:
            yield
        finally:
            self._process.send(signal.SIGUSR2)
            self._wait_for_port(listening=True)

    @contextmanager
    def hang(self) -> Iterator[None]:
        """Connections are accepted inside and nothing is answered."""
        self._process.pause()
        try:
            yield
        finally:
            self._process.resume()

    def _wait_for_port(self, *, listening: bool) -> None:
        wait_until(
            lambda: is_listening(self._port.number) is listening,
            name="S3 server",
            wanted="listening" if listening else "refusing connections",
            deadline_s=START_DEADLINE_S,
        )

    def close(self) -> None:
        self._process.stop()
        self._port.release()

    def __enter__(self) -> LocalBucket:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
