"""One soak: samples, scrubs, cold reads and audits while the load goes on; what was found.

Owns the order of things. Whatever is wrong is a line of `Soaked.wrong`, and nothing ends it early but a
process that has ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

from seawall.local.waiting import becomes_true
from tests.faults.scrub import tiered_to
from tests.faults.test_whole_system import closed_ends, replayed
from tests.soak.bounds import Wanted
from tests.soak.looking import Looking, live_bytes
from tests.soak.seen import Audited, Soaked, judge
from tests.soak.traffic import TOPICS, Load, Reader, read_cold
from tests.soak.world import HEARTBEAT_S, World, running

CATCH_UP_S = 300.0
VERB_S = 1200.0
SCRUB_S = 60  # of one while the load goes on; the next goes on where it ended, and the last has no limit
HEAP_LOOKS = 12

Say = Callable[[str], None]
Show = Callable[[Soaked, float], None]


class Soak:
    """While it runs."""

    def __init__(self, world: World, wanted: Wanted, found: Soaked, say: Say) -> None:
        self._world = world
        self._wanted = wanted
        self._found = found
        self._say = say
        self._began_s = time.monotonic()

    @property
    def at_s(self) -> float:
        return time.monotonic() - self._began_s

    def steadily(self) -> None:
        """Until the time is over, or a process is."""
        wanted = self._wanted
        steps: list[tuple[float, Callable[[], None]]] = [
            (wanted.scrub_every_s, self.read_cold),
            (wanted.scrub_every_s, partial(self.scrub, "--max-duration", f"{SCRUB_S}s")),
        ]
        if wanted.has_audit:
            steps += [(wanted.audit_every_s, self.audit), (wanted.seconds / HEAP_LOOKS, self.look_at_heap)]
        due_s = [every_s for every_s, _ in steps]
        while self.at_s < wanted.seconds:
            number = min(range(len(steps)), key=due_s.__getitem__)
            self._wait_until(min(due_s[number], wanted.seconds))
            if dead := [name for name, each in self._world.processes.items() if not each.is_alive]:
                self._wrong(
                    *(f"{name} has ended:\n{self._world.processes[name].last_lines()}" for name in dead)
                )
                return
            if due_s[number] <= self.at_s:
                steps[number][1]()
                due_s[number] = max(due_s[number] + steps[number][0], self.at_s)

    def read_cold(self) -> None:
        self._wrong(*read_cold(self._world.served_at))
        self._found.cold_reads += 1

    def scrub(self, *limits: str) -> None:
        began_s = time.monotonic()
        code, said, error = self._seawall("tier", "scrub", *limits, "--json")
        # 3: the time was over; 4, while the load goes on: nothing is in the tier yet
        is_well = code == 0 or (bool(limits) and code in (3, 4))
        if not is_well:
            self._wrong(f"scrub ended with {code}: {said[-2000:]}{error[-1000:]}")
        if said.lstrip().startswith("{"):
            whole = json.loads(said)
            kept = {name: value for name, value in whole.items() if not isinstance(value, (list, dict))}
            self._found.scrubs.append((time.monotonic() - began_s, kept))

    def audit(self) -> None:
        """As of a moment whose evidence is in the tables, if every lag is within its bound."""
        behind = timedelta(seconds=self._wanted.evidence_s)
        self._audit_as_of(datetime.now(tz=timezone.utc) - behind)

    def last_audit(self) -> None:
        """As of the end of all: what agents say after it is in the tables before it begins."""
        moment = datetime.now(tz=timezone.utc)
        self._wait_until(self.at_s + 5 * HEARTBEAT_S)
        told = self._world.told()
        if not becomes_true(lambda: self._world.ingested() >= told, deadline_s=CATCH_UP_S):
            self._wrong(f"ingest did not come to the end within {CATCH_UP_S:g} s")
        self._audit_as_of(moment)
        last = self._found.audits[-1].summary if self._found.audits else {"verdicts": {}}
        if not last["verdicts"].get("PASS"):
            self._wrong("the last audit let no log pass")
        if last["verdicts"].get("INDETERMINATE"):
            self._wrong(f"the last audit cannot tell: {self._statements()}")

    def look_at_heap(self) -> None:
        ingest = self._world.ingest
        if ingest is not None and ingest.pid is not None and (live := live_bytes(ingest.pid)) is not None:
            self._found.heap.append(live._replace(at_s=self.at_s))

    def catch_up(self, load: Load, reader: Reader) -> None:
        """When nothing comes any more, all are where the load ended."""
        world = self._world

        def is_copied() -> bool:
            table = replayed(world.cluster)
            ends = {log: end for topic in TOPICS for log, end in closed_ends(world.cluster, topic).items()}
            return all(tiered_to(table, log) >= end for log, end in ends.items())

        ends: dict[str, Callable[[], bool]] = {
            "the readers": lambda: reader.has_all(load.sent),
            "the copies": is_copied,
        }
        for name, is_there in ends.items():
            if not becomes_true(is_there, deadline_s=CATCH_UP_S):
                self._wrong(f"{name} did not catch up within {CATCH_UP_S:g} s")

    def end(self) -> None:
        for each in (self._world.serve, self._world.ingest):
            if each is not None and not each.stop(grace_s=CATCH_UP_S):
                self._wrong(f"{each.name} did not end when it was told to")
        for name, process in self._world.processes.items():
            if process.log.exists() and "Traceback" in process.log.read_text(errors="replace"):
                self._wrong(f"{name} left a traceback in its log")

    def _audit_as_of(self, moment: datetime) -> None:
        began_s = time.monotonic()
        asked = ("audit", "run", "--as-of", moment.isoformat(), "--no-alerts", "--no-holds", "--json")
        code, said, error = self._seawall(*asked)
        if not said.lstrip().startswith("{"):
            self._wrong(f"audit run ended with {code}: {said[-500:]}{error[-2000:]}")
            return
        audited = Audited(at_s=self.at_s, took_s=time.monotonic() - began_s, summary=json.loads(said))
        self._found.audits.append(audited)
        told = audited.summary
        self._say(f"audit {told['run']}: {audited.verdicts}, {told['changes'] or 'nothing found'}")
        if told["changes"] or told["open_findings"] or told["verdicts"].get("VIOLATION"):
            _, listed, _ = self._seawall("audit", "findings", "--json")
            self._wrong(f"run {told['run']} made a false finding: {told['changes']} {listed[:3000]}")
        elif code not in (0, 4):
            self._wrong(f"audit run ended with {code}: {error[-2000:]}")

    def _statements(self) -> str:
        """Why logs are not PASS, by their statements."""
        said = []
        for topic in (*TOPICS, "__seawall_segments", "__seawall_audit", "__seawall_policy"):
            _, listed, _ = self._seawall("audit", "statement", topic, "--json")
            if listed.lstrip().startswith("["):
                said += [
                    f"{topic}-{each['partition']} {each['verdict']}: {each['missing']} {each['suspect']}"
                    for each in json.loads(listed)
                    if each["verdict"] != "PASS"
                ]
        return "; ".join(said) or "of which no statement is known"

    def _seawall(self, *arguments: str) -> tuple[int | None, str, str]:
        """A verb as a schedule would start it."""
        command = [sys.executable, "-m", "seawall", *arguments]
        try:
            called = subprocess.run(
                command,
                env=dict(self._world.environ),
                capture_output=True,
                text=True,
                timeout=VERB_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return None, "", f"it took longer than {VERB_S:g} s"
        return called.returncode, called.stdout, called.stderr

    def _wait_until(self, at_s: float) -> None:
        becomes_true(lambda: self.at_s >= at_s, deadline_s=max(0.0, at_s - self.at_s) + 1)

    def _wrong(self, *lines: str) -> None:
        self._found.wrong += lines
        for each in lines:
            self._say(f"WRONG {each}")


def soak(
    folder: Path,
    wanted: Wanted,
    *,
    say: Say = lambda _: None,
    show: Show = lambda found, at_s: None,
) -> Soaked:
    """All of it; what was wrong is in the answer. `show` is told after each sample."""
    found = Soaked()
    with running(
        folder, wanted.kept, commit_every_s=wanted.commit_every_s, has_audit=wanted.has_audit
    ) as world:
        own = Soak(world, wanted, found, say)
        say("everything is up")
        with Load(world.cluster.bootstrap, wanted.records_per_s) as load, Reader(world.served_at) as reader:
            looking = Looking(world, load, reader, found, lambda: own.at_s)
            with _sampling((looking.look, lambda: show(found, own.at_s)), wanted.sample_every_s):
                own.steadily()
            load.stop()
            found.records = load.records
            say("the load has ended")
            own.catch_up(load, reader)
            found.wrong += [f"the producer: {each}" for each in load.failed[:3]]
            found.wrong += [f"the reader: {each}" for each in reader.wrong[:3]]
        own.scrub()
        own.read_cold()
        if wanted.has_audit:
            own.last_audit()
        own.end()
    judge(found, wanted)
    return found


@contextmanager
def _sampling(steps: Sequence[Callable[[], Any]], every_s: float) -> Iterator[None]:
    """In a thread of its own: neither a scrub nor an audit holds it up."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every_s):
            for step in steps:
                step()

    thread = threading.Thread(target=run, name="samples", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
