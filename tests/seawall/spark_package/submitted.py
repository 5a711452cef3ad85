"""A package made by its verb, and its steps submitted to a standalone cluster that is hurt while they run.

Owns the folder that spark-submit is called in, and each driver's process. A driver has no virtual environment
of ours on its path, and its packages from the archive alone.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seawall.local.waiting import wait_until
from seawall.spark_package import archive
from tests.cluster.fixtures import QUICK_SPARK
from tests.cluster.standalone import DEADLINE_S, SPARK_HOME, Executor, StandaloneCluster

VERB_S = 1800.0
QUICK = QUICK_SPARK["spark.driver.defaultJavaOptions"]
# One core of each worker; and as few tasks as small tables need, where Spark and Delta would have 200 and 50.
CONF = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "700m",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
}
_LOST_EXECUTOR = re.compile(r"Lost executor (\S+) on")
_LOST_TASK = re.compile(r"Lost task .*(?:ExecutorLostFailure|FetchFailed)")

# What is done to the cluster while a driver works on it (it asks whether that is over), and a sentence of it.
Fault = Callable[[StandaloneCluster, Callable[[], bool]], str]


def unpack(package: Path, into: Path) -> None:
    """Its environment, by what every host has: tarfile learnt what is safe in 3.11.4 only."""
    into.mkdir()
    subprocess.run(["tar", "-xzf", package / archive.ENVIRONMENT, "-C", into], check=True)


def bare_environ() -> dict[str, str]:
    """What a host of a cluster has: Spark, a Python of the right version, and nothing of ours."""
    around = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SEAWALL_", "PYTHON", "VIRTUAL_ENV", "PYSPARK_", "SPARK_"))
    }
    path = [each for each in os.environ["PATH"].split(os.pathsep) if not each.startswith(sys.prefix)]
    return around | {
        "PATH": os.pathsep.join(path),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PACKAGED_PYTHON": str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a step printed; what was done to it; executors and tasks that its driver saw go."""

    said: Any
    hurt: tuple[str, ...]
    lost_executors: int
    lost_tasks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A folder with package/ and environment/ in it, as the printed commands want them."""

    folder: Path
    words: tuple[str, ...]  # of spark-submit, with {master} in the master's place
    logs: list[Path] = field(default_factory=list)

    @classmethod
    def make(cls, folder: Path) -> Package:
        """By `seawall spark package --from-here`, and unpacked as it says."""
        at = folder / "package"
        made = subprocess.run(
            [sys.executable, "-m", "seawall", "spark", "package", str(at), "--from-here", "--json"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        unpack(at, folder / "environment")
        return cls(folder=folder, words=tuple(json.loads(made.stdout)["standalone"]))

    def submit(
        self,
        cluster: StandaloneCluster,
        *arguments: str,
        environ: Mapping[str, str],
        faults: Sequence[Fault] = (),
    ) -> Done:
        """`arguments`: entry.py's options and the verb."""
        number = len(self.logs)
        out, err = (self.folder / f"driver-{number}.{kind}" for kind in ("out", "err"))
        self.logs.append(err)
        sized = [word for name, value in CONF.items() for word in ("--conf", f"{name}={value}")]
        submit, _, _, *rest = self.words  # spark-submit --master spark://HOST:7077 ...
        command = [str(SPARK_HOME / "bin" / submit), "--master", cluster.master, *rest[:-1], *sized, rest[-1]]
        with (
            out.open("wb") as said,
            err.open("wb") as log,
            subprocess.Popen(
                [*command, *arguments],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=log,
                env={**bare_environ(), **environ},
                start_new_session=True,
            ) as driver,
        ):
            try:
                hurt = []
                for fault in faults:
                    hurt.append(fault(cluster, lambda: driver.poll() is not None))
                code = driver.wait(timeout=VERB_S)
            finally:
                if driver.poll() is None:
                    os.killpg(driver.pid, signal.SIGKILL)
        told = err.read_text(errors="replace")
        assert code == 0, told[-6000:]
        return Done(
            said=_value(out.read_text()),
            hurt=tuple(hurt),
            lost_executors=len(set(_LOST_EXECUTOR.findall(told))),
            lost_tasks=len(_LOST_TASK.findall(told)),
        )


def _value(text: str) -> Any:
    """The JSON that a verb printed, whatever spark-submit said before it, and entry.py after it."""
    begin = min(at for mark in ("\n{", "\n[") if (at := ("\n" + text).find(mark)) >= 0)
    return json.JSONDecoder().raw_decode(text, begin)[0]


def _at_a_task(
    cluster: StandaloneCluster, over: Callable[[], bool], *, of: int, after: int = 0
) -> tuple[Executor, int]:
    """An executor with a task in its hands, where there are `of`, and how many it finished before."""
    found: list[tuple[Executor, int]] = []

    def is_there() -> bool:
        now = [(each, *each.tasks()) for each in cluster.executors()]
        found[:] = [(each, done) for each, done, at in now if at and done >= after]
        return over() or (bool(found) and len(now) >= of)

    wait_until(is_there, name="the job", wanted=f"a task behind {after} others", deadline_s=DEADLINE_S)
    assert not over(), "the driver was done before"
    return found[0]


def kill_an_executor(*, after: int) -> Fault:
    """One of two, at a task behind so many others of its own."""

    def kill(cluster: StandaloneCluster, over: Callable[[], bool]) -> str:
        lost, done = _at_a_task(cluster, over, of=2, after=after)
        lost.kill()
        return f"an executor of worker {lost.worker}, killed at its task {done + 1}"

    return kill


def kill_a_worker(cluster: StandaloneCluster, over: Callable[[], bool]) -> str:
    """With the executor that is at a task: a host that is gone. The other one's may be starting."""
    lost, done = _at_a_task(cluster, over, of=1)
    cluster.kill_worker(lost.worker)
    return f"worker {lost.worker}, killed with its executor at task {done + 1}"
