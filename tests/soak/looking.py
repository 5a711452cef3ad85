"""One sample: what each process holds, how far behind each is, and what lies on the disks.

Owns the asking. A page that does not come is counted, and the sample has what came.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import KafkaException

from tests.soak.measured import At, Behind, family, held_by, on_disk_bytes
from tests.soak.seen import NEVER, Soaked
from tests.soak.traffic import PLACES, Load, Reader
from tests.soak.world import World

JCMD_S = 60.0


class Looking:
    """`at_s` says how old the soak is."""

    def __init__(
        self, world: World, load: Load, reader: Reader, found: Soaked, at_s: Callable[[], float]
    ) -> None:
        self._world = world
        self._load = load
        self._reader = reader
        self._found = found
        self._at_s = at_s
        self._behind: defaultdict[object, Behind] = defaultdict(Behind)

    def look(self) -> None:
        self._found.samples += 1
        self._processes()
        self._disks()
        for ask in (self._agents, self._serve, self._ingest, self._readers):
            try:
                ask()
            except (OSError, KafkaException):
                self._found.silent += 1

    def _processes(self) -> None:
        for name, process in self._world.processes.items():
            if (pid := process.pid) is not None and (held := held_by(pid)) is not None:
                self._found.held[name].append((self._at_s(), held))

    def _disks(self) -> None:
        world = self._world
        for number in world.agents:
            state = world.state_of(number)
            spool, journals = on_disk_bytes(state, "events.sqlite*"), on_disk_bytes(state, "*observer*-wal")
            self._disk(f"agent-{number}, spool", spool)
            self._disk(f"agent-{number}, journals", journals)
            self._disk(f"agent-{number}, state", on_disk_bytes(state) - spool - journals)
        self._disk("serve, cache", on_disk_bytes(world.folder / "cache"))
        if world.ingest is not None:
            self._disk("ingest, scratch", on_disk_bytes(world.scratch))
            self._disk("tables", on_disk_bytes(world.folder / "tables"))

    def _agents(self) -> None:
        said = [self._world.agent_says(number) for number in self._world.agents]
        for name, metric in (
            ("copies, s", "seawall_log_lag_seconds"),
            ("spool waiting, bytes", "seawall_events_pending_bytes"),
            ("spool waiting, s", "seawall_events_pending_seconds"),
        ):
            self._lag(name, max(each.get(metric, 0.0) for each in said))
        for each in said:
            self._never(each)

    def _serve(self) -> None:
        said = self._world.serve_says()
        # Behind for as long as it was not once at the end.
        self._lag("serve's table, s", self._age("serve", said["seawall_serve_metadata_lag_offsets"]))
        self._never(said)

    def _ingest(self) -> None:
        if self._world.ingest is not None:
            told, arrived = self._world.told(), self._world.ingested()
            self._lag("ingest, s", self._behind["ingest"].age_s(self._at_s(), told, arrived))
            self._lag("ingest, events", max(0, told - arrived))

    def _readers(self) -> None:
        sent = self._load.sent
        ages = [self._behind[each].age_s(self._at_s(), sent, self._reader.read[each]) for each in PLACES]
        self._lag("readers, s", max(ages))

    def _age(self, name: str, lag: float) -> float:
        """Of a number that should be 0 again and again."""
        behind = self._behind[name]
        if not lag:
            self._behind.pop(name)
        return behind.age_s(self._at_s(), lag, 0.0)

    def _lag(self, name: str, value: float) -> None:
        self._found.lags[name].append(At(self._at_s(), value))

    def _disk(self, name: str, value: float) -> None:
        self._found.disks[name].append(At(self._at_s(), value))

    def _never(self, said: dict[str, float]) -> None:
        for name in NEVER:
            self._found.never[name] = max(self._found.never[name], said.get(name, 0.0))


def live_bytes(pid: int) -> At | None:
    """What a JVM below `pid` has in use, after it has looked for what is free; None where nobody can say."""
    jcmd = shutil.which("jcmd")
    java = [each for each in family(pid) if _name_of(each) == "java"]
    if jcmd is None or not java:
        return None
    try:
        said = subprocess.run(
            [jcmd, str(java[0]), "GC.class_histogram"],
            capture_output=True,
            text=True,
            timeout=JCMD_S,
            check=False,
        ).stdout.split()
    except subprocess.TimeoutExpired:
        return None
    return At(0.0, float(said[-1])) if "Total" in said[-3:] and said[-1].isdecimal() else None


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
