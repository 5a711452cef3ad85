"""A real standalone Spark: a master and workers of one core each, on 127.0.0.1, that tests may kill.

Owns the processes of master and workers; executors are their workers' own, found by where they run. A worker
is given what Spark's start scripts would find out, and none of our virtual environment.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType

import pyspark

from seawall.jvm.java import find_java
from seawall.local.ports import LOOPBACK, ReservedPort, is_listening
from seawall.local.process import Child
from seawall.local.waiting import wait_until

SPARK_HOME = Path(pyspark.__file__).parent
DEADLINE_S = 900.0
MEMORY = "900m"
REGISTERED = "Registering worker"
_DEPLOY = "org.apache.spark.deploy"
_BEGUN = re.compile(r"Running task .*\(TID (\d+)\)")
_ENDED = re.compile(r"(?:Finished task|Exception in task|Executor killed task) .*\(TID (\d+)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Executor:
    """A process that runs tasks; `folder` is its own, below its worker's."""

    pid: int
    worker: int
    folder: Path

    def tasks(self) -> tuple[int, int]:
        """How many it has finished, and how many it is at."""
        log = self.folder / "stderr"
        said = log.read_text(errors="replace") if log.exists() else ""
        begun, ended = set(_BEGUN.findall(said)), set(_ENDED.findall(said))
        return len(ended), len(begun - ended)

    def kill(self) -> None:
        with suppress(ProcessLookupError):  # it ends by itself where its worker or its job has
            os.kill(self.pid, signal.SIGKILL)


class StandaloneCluster:
    """Use it as a context; each worker keeps what its executors write in <folder>/worker-<number>."""

    def __init__(self, folder: Path, *, workers: int = 2, environ: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._port = ReservedPort()
        self.master = f"spark://{self._port.address}"
        found = {"SPARK_HOME": str(SPARK_HOME), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": LOOPBACK}
        self._environ = {**os.environ, **found, **(environ or {})}
        port = ("--port", str(self._port.number))
        self._master = self._server("master", f"{_DEPLOY}.master.Master", *port)
        self._workers = {number: self._worker(number) for number in range(1, workers + 1)}

    def _server(self, name: str, main_class: str, *arguments: str) -> Child:
        java = [str(find_java().path), "-Xmx256m", "-cp", f"{SPARK_HOME / 'jars'}/*", main_class]
        here = ["--host", LOOPBACK, "--webui-port", "0"]
        return Child(
            name=f"Spark's {name}",
            argv=[*java, *here, *arguments],
            log=self.folder / f"{name}.log",
            env=self._environ,
        )

    def _worker(self, number: int) -> Child:
        name = f"worker-{number}"
        place = ("--cores", "1", "--memory", MEMORY, "--work-dir", str(self.folder / name))
        return self._server(name, f"{_DEPLOY}.worker.Worker", *place, self.master)

    def __enter__(self) -> StandaloneCluster:
        try:
            self._master.start()
            self._master.wait_until_ready(
                partial(is_listening, self._port.number), wanted="to listen", deadline_s=DEADLINE_S
            )
            self.start_workers()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        for each in (*self._workers.values(), self._master):
            each.kill()
        for one in self.executors():
            one.kill()
        self._port.release()

    def start_workers(self) -> None:
        """Those that do not run; returns when the master knows them."""
        dead = [each for each in self._workers.values() if not each.is_alive]
        wanted = self._registered() + len(dead)
        for each in dead:
            each.start()
        wait_until(
            lambda: self._registered() >= wanted,
            name="Spark's master",
            wanted=f"{len(dead)} more workers",
            deadline_s=DEADLINE_S,
        )

    def _registered(self) -> int:
        log = self._master.log
        return log.read_text(errors="replace").count(REGISTERED) if log.exists() else 0

    def kill_worker(self, number: int) -> None:
        """With all that it runs: a host that is gone."""
        self._workers[number].kill()
        for each in self.executors():
            if each.worker == number:
                each.kill()

    def executors(self) -> list[Executor]:
        """Those that live, the lowest pid first."""
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            try:
                words = (each / "cmdline").read_bytes().split(b"\0")
                folder = (each / "cwd").readlink()
            except OSError:  # it ended meanwhile
                continue
            if any(word.endswith(b"CoarseGrainedExecutorBackend") for word in words):
                below = folder.relative_to(self.folder).parts if folder.is_relative_to(self.folder) else ()
                if below:
                    number = int(below[0].removeprefix("worker-"))
                    found.append(Executor(pid=int(each.name), worker=number, folder=folder))
        return sorted(found, key=lambda each: each.pid)
