"""`seawall audit ingest --continuous` as a service that is killed, its JVM with it or left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from audit_engine.tables.marks import read
from seawall.local.waiting import becomes_true

DEADLINE_S = 120.0
OTHER_WRITER = 53
# A JVM that lives for seconds is not worth its second compiler.
QUICK_JVM = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"


class IngestService:
    """One at a time, over tables in `folder`. What it says stands in `log`, of all its lives."""

    def __init__(self, folder: Path, *, bootstrap: str, topic: str, batch_records_max: int) -> None:
        self.root = str(folder / "tables")
        self.log = folder / "service.log"
        # An unknown variable of ours is refused, and those of tests are none that the product knows.
        around = {name: value for name, value in os.environ.items() if not name.startswith("SEAWALL_")}
        self._environ = around | {
            "SEAWALL_AUDIT__TABLES": self.root,
            "SEAWALL_AUDIT__TOPIC": topic,
            "SEAWALL_AUDIT__COMMIT_EVERY_S": "1",
            "SEAWALL_AUDIT__BATCH_RECORDS_MAX": str(batch_records_max),
            "SEAWALL_KAFKA__BOOTSTRAP": bootstrap,
            "JDK_JAVA_OPTIONS": QUICK_JVM,
            "TMPDIR": str(folder),  # what a killed process leaves behind goes with the test
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: list[int] = []  # of lives whose JVM was left behind
        self.overtaken = 0  # lives that ended by themselves, as a JVM that was left behind was quicker

    def __enter__(self) -> IngestService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for group in self._groups:
            if _lives(group):
                os.killpg(group, signal.SIGKILL)

    def start(self, *, batch_records_max: int | None = None) -> None:
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
        command = [sys.executable, "-m", "seawall", "audit", "ingest", "--continuous", "--json"]
        if batch_records_max is not None:
            self._environ["SEAWALL_AUDIT__BATCH_RECORDS_MAX"] = str(batch_records_max)
        with self.log.open("ab") as errors:
            self._process = subprocess.Popen(
                command, env=self._environ, start_new_session=True, stdout=subprocess.PIPE, stderr=errors
            )

    @property
    def _now(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it was not started"
        return self._process

    def kill(self, *, leaves_jvm: bool = False) -> None:
        """-9, to the whole group or to the Python process alone."""
        process = self._now
        if process.poll() is not None:
            self._must_be_overtaken()
        elif leaves_jvm:
            process.kill()
            self._groups.append(process.pid)
        else:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def held(self) -> int:
        """Offsets that audit_events has gone past, by its own log: Spark is not asked."""
        commits = sorted((Path(self.root) / "audit_events" / "_delta_log").glob("*.json"), reverse=True)
        for commit in commits:
            for line in commit.read_text(encoding="utf-8").splitlines():
                mark = read(json.loads(line).get("commitInfo", {}).get("userMetadata"))
                if mark is not None:
                    return sum(mark.next_offsets.values())
        return 0

    def goes_on(self, to: int) -> None:
        """Until `to` offsets are in; the deadline is each commit's, as nobody knows how many there are."""
        while (held := self.held()) < to:
            moved = partial(lambda before: self._now.poll() is not None or self.held() > before, held)
            assert becomes_true(moved, deadline_s=DEADLINE_S), f"it stands at {held} of {to}"
            self._again_if_overtaken()

    def _again_if_overtaken(self) -> None:
        if self._now.poll() is not None:
            self._must_be_overtaken()
            self.start()

    def _must_be_overtaken(self) -> None:
        """A JVM that was left behind may have committed what this one was at: a supervisor tries again."""
        said = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
        status = self._now.returncode
        assert (status, bool(self._groups)) == (OTHER_WRITER, True), f"ended by itself, with {status}: {said}"
        assert "another ingest" in said.lower(), said
        self.overtaken += 1

    def stop(self) -> tuple[int, dict[str, Any]]:
        """SIGTERM, which ends it behind its batch: its exit code, and what it says it has done."""
        self._now.send_signal(signal.SIGTERM)
        said, _ = self._now.communicate(timeout=DEADLINE_S)
        return self._now.returncode, json.loads(said)

    def is_alone(self) -> bool:
        """Whether every JVM that was left behind has ended by itself."""
        self._groups = [group for group in self._groups if _lives(group)]
        return not self._groups


def _lives(group: int) -> bool:
    """Whether any process of the group runs; one that has ended may still wait to be reaped by its parent."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it is gone
            continue
        if fields[2] == str(group) and fields[0] not in "ZX":
            return True
    return False
