"""What lies in deploy/ for hosts: units, timers and a crontab that systemd reads, and commands that exist."""

from __future__ import annotations

import ast
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer.main

from seawall.cli.app import app
from seawall.local.waiting import wait_until

DEPLOY = Path(__file__).parents[2] / "deploy"
ANALYZE = shutil.which("systemd-analyze")
UNITS = sorted((DEPLOY / "systemd").glob("seawall-[!t]*.service"))
TROUBLE = DEPLOY / "systemd" / "seawall-trouble@.service"
STEPS = ("audit ingest", "audit run", "audit maintain", "alerts deliver", "audit status")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Every call of Seawall's in these files, with the file's name."""
    for unit in UNITS:
        for line in re.findall(r"^Exec\w+=/usr/bin/env seawall (.*)$", unit.read_text(), re.MULTILINE):
            yield unit.name, shlex.split(line)
    for line in (DEPLOY / "systemd" / "crontab").read_text().splitlines():
        if line[:1] in set("*0123456789"):
            for called in re.findall(r"[ (]seawall ((?:audit|alerts) [^;|&>)]*?) *(?:[;|&>)2]|$)", line):
                yield "crontab", shlex.split(called)
    tree = ast.parse((DEPLOY / "airflow" / "seawall_dags.py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for called in re.findall(r"^ ?((?:audit|alerts) [a-z]+(?: --[\w-]+(?: \d+)?)*)", node.value):
                yield "seawall_dags.py", shlex.split(called)


def parsed(words: list[str]) -> None:
    """As the program would, up to where it would begin; raises what it would refuse them with."""
    command: Any = typer.main.get_command(app)
    if words[:1] == ["--settings"]:
        words = words[2:]
    name, context = "seawall", None
    while hasattr(command, "get_command"):
        if command.invoke_without_command and (not words or words[0].startswith("-")):
            break
        context = type(command.make_context(name, ["--help"], resilient_parsing=True))(
            command, info_name=name
        )
        name, *words = words
        command = command.get_command(context, name)
        assert command is not None, name
    command.make_context(name, words, parent=context)


def test_every_command_of_a_schedule_is_one_that_the_program_takes() -> None:
    """Verbs and options, in each of the three; and each of the three has all the steps."""
    found = list(commands())

    for _, words in found:
        parsed(words)
    for source in ("crontab", "seawall_dags.py"):
        told = [" ".join(words) for file, words in found if file == source]
        assert all(any(each.startswith(step) for each in told) for step in STEPS), source
    of_units = [" ".join(words) for file, words in found if file.endswith(".service")]
    assert all(any(step in each for each in of_units) for step in STEPS)


def test_a_command_that_is_none_would_be_noticed() -> None:
    """An option that does not exist, and a verb that does not."""
    with pytest.raises(Exception, match="No such option"):
        parsed(["audit", "run", "--often"])
    with pytest.raises(AssertionError):
        parsed(["audit", "often"])


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed (Debian: systemd)")
def test_systemd_takes_the_units() -> None:
    """Each service and each timer, without a warning."""
    files = [*UNITS, TROUBLE, *sorted((DEPLOY / "systemd").glob("*.timer"))]
    done = subprocess.run(
        [str(ANALYZE), "verify", "--man=no", *map(str, files)], capture_output=True, text=True, timeout=60
    )

    assert len(files) > 10
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_each_timer_has_its_service_and_no_run_overlaps() -> None:
    """A oneshot service is not started again while it runs; the agent restarts by itself."""
    timers = {each.stem for each in (DEPLOY / "systemd").glob("*.timer")}
    jobs = {each.stem for each in UNITS if "Type=oneshot" in each.read_text()}

    assert timers == jobs
    assert {each.stem for each in UNITS} - jobs == {"seawall-agent"}


def test_a_step_that_fails_is_tried_again_and_then_told() -> None:
    """Of systemd: each oneshot service names who is told; those that write are started again, a few times an
    hour, but not for what an audit found."""
    for unit in UNITS:
        text = unit.read_text()
        if unit.stem == "seawall-agent":
            assert "Restart=always" in text
            continue
        assert f"OnFailure={TROUBLE.name.replace('@', '@%n')}" in text, unit.name
        if unit.stem in ("seawall-ingest", "seawall-audit", "seawall-maintain"):
            assert "Restart=on-failure" in text, unit.name
            burst = 6 if unit.stem == "seawall-ingest" else 5
            assert f"StartLimitBurst={burst}\n" in text, unit.name
    # What is in quarantine or lost only this run says; the next one ends with 0.
    assert "RestartPreventExitStatus=1\n" in (DEPLOY / "systemd" / "seawall-ingest.service").read_text()
    assert "SuccessExitStatus=1 3 4" in (DEPLOY / "systemd" / "seawall-audit.service").read_text()
    # 4 is the alert: there is no verdict, or none to believe.
    assert "SuccessExitStatus=1 3\n" in (DEPLOY / "systemd" / "seawall-late.service").read_text()


@pytest.mark.skipif(ANALYZE is None, reason="systemd-analyze is not installed (Debian: systemd)")
@pytest.mark.parametrize("unit", [each for each in UNITS if "StartLimitBurst" in each.read_text()])
def test_no_timer_uses_up_the_starts_that_are_for_trying_again(unit: Path) -> None:
    """The limit counts every start: a whole window of the timer's leaves room for two tries at least."""
    burst = int(_of(unit, "StartLimitBurst"))
    span = _analyzed("timespan", _of(unit, "StartLimitIntervalSec"))
    [window_us] = re.findall(r"s: (\d+)\n", span)
    calendar = _analyzed("calendar", "--iterations=20", _of(unit.with_suffix(".timer"), "OnCalendar"))
    elapses = re.findall(r"(?:elapse|#\d+): \w+ (.+) UTC", calendar)
    starts_s = [datetime.fromisoformat(each).timestamp() for each in elapses]
    most = max(sum(0 <= each - first <= int(window_us) / 1e6 for each in starts_s) for first in starts_s)

    assert len(starts_s) == 20, calendar
    assert most + 2 <= burst


def _of(unit: Path, name: str) -> str:
    [value] = re.findall(rf"^{name}=(.+)$", unit.read_text(), re.MULTILINE)
    return str(value)


def _analyzed(*words: str) -> str:
    around = os.environ | {"TZ": "UTC", "LC_ALL": "C.UTF-8"}
    command = [str(ANALYZE), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=around).stdout


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A folder with programs of ours in place of what cron would find, and of Seawall's state."""

    folder: Path

    def cron(self, step: str) -> subprocess.Popen[str]:
        """The line of a step, as cron starts it."""
        lines = (DEPLOY / "systemd" / "crontab").read_text().splitlines()
        [line] = [each for each in lines if each[:1] in set("*0123456789") and f"seawall {step}" in each]
        command = line.split(None, 6)[6].replace("/var/lib/seawall", str(self.folder))
        return subprocess.Popen(
            ["/bin/bash", "-c", command],
            env={"PATH": f"{self.folder}:{os.environ['PATH']}", "HERE": str(self.folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/bash\necho {name} $* >>$HERE/calls\n{text}\n")
        path.chmod(0o755)

    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def host(tmp_path: Path) -> Host:
    found = Host(folder=tmp_path)
    found.program("sleep", "exit 0")
    return found


@pytest.mark.parametrize(("code", "times"), [(0, 1), (1, 1), (3, 1), (4, 1), (55, 3)])
def test_cron_tries_an_audit_again_that_failed_and_not_one_that_found(
    host: Host, code: int, times: int
) -> None:
    """Three times, with a wait; and whatever came of it is written for Prometheus, once."""
    host.program("seawall", f'[ "$2" = metrics ] || exit {code}')

    with host.cron("audit run") as job:
        job.communicate(timeout=60)

    calls = host.calls()
    assert calls.count("seawall audit run") == times
    assert sum(each.startswith("seawall audit metrics") for each in calls) == 1
    assert calls[-1].startswith("seawall audit metrics")


@pytest.mark.parametrize("step", ["audit ingest", "audit run", "audit maintain", "alerts deliver"])
def test_cron_starts_no_second_one_of_a_step(host: Host, step: str) -> None:
    """While one holds the lock the next ends at once, and nothing of the step was called by it."""
    host.program("seawall", f'[ "$1 $2" = "{step}" ] || exit 0; read -r _ <$HERE/gate')
    os.mkfifo(host.folder / "gate")
    with host.cron(step) as first:
        wait_until(lambda: len(host.calls()) == 1, name="cron", wanted="the first", deadline_s=60)
        with host.cron(step) as second:
            second.communicate(timeout=60)
        assert [each for each in host.calls() if f"seawall {step}" in each] == host.calls()[:1]
        (host.folder / "gate").write_text("go\n")
        first.communicate(timeout=60)
    assert first.returncode == 0


@pytest.mark.parametrize(("code", "is_mailed"), [(0, False), (1, False), (3, False), (4, True)])
def test_cron_mails_that_there_is_no_verdict_and_nothing_else(host: Host, code: int, is_mailed: bool) -> None:
    """What a job prints is mailed: where a run is late, why; where it is not, nothing at all."""
    host.program("seawall", f"echo CANNOT TELL: the last run is 40 hours old; exit {code}")

    with host.cron("audit status") as job:
        said, _ = job.communicate(timeout=60)

    assert ("40 hours" in said) is is_mailed
    assert bool(said) is is_mailed


@pytest.mark.parametrize(("code", "is_mailed"), [(0, False), (1, True), (53, True)])
def test_cron_mails_what_ingest_could_not_take_and_not_what_it_took(
    host: Host, code: int, is_mailed: bool
) -> None:
    """It says a line every five minutes; of what went wrong, and of what is in quarantine or lost, all."""
    host.program("seawall", f"echo 12 offsets in 1 commits; echo more >&2; exit {code}")

    with host.cron("audit ingest") as job:
        said, _ = job.communicate(timeout=60)

    assert said == ("12 offsets in 1 commits\nmore\n" if is_mailed else "")


@dataclass(slots=True)
class Task:
    """What Airflow would be handed: it is too large to have beside us, and was tried by hand."""

    task_id: str
    bash_command: str
    retries: int
    more: dict[str, object]
    dag: dict[str, object]
    behind: str | None = None

    def __rshift__(self, other: Task) -> Task:
        other.behind = self.task_id
        return other


def airflow_tasks(monkeypatch: pytest.MonkeyPatch) -> dict[str, Task]:
    """The tasks of deploy/airflow, by the names of their DAG and of their own."""
    found: dict[str, Task] = {}
    within: list[dict[str, object]] = []

    class Dag:
        def __init__(self, **said: object) -> None:
            self.said = said

        def __enter__(self) -> None:
            within.append(self.said)

        def __exit__(self, *_: object) -> None:
            within.pop()

    def operator(*, task_id: str, bash_command: str, retries: int, **more: object) -> Task:
        task = Task(task_id, bash_command, retries, more, within[-1])
        found[f"{within[-1]['dag_id']}.{task_id}"] = task
        return task

    modules: dict[str, dict[str, object]] = {
        "airflow": {},
        "airflow.sdk": {"DAG": Dag},
        "airflow.providers": {},
        "airflow.providers.standard": {},
        "airflow.providers.standard.operators": {},
        "airflow.providers.standard.operators.bash": {"BashOperator": operator},
    }
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    runpy.run_path(str(DEPLOY / "airflow" / "seawall_dags.py"))
    return found


def test_airflow_runs_one_of_each_at_a_time_and_tries_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step three times more; the looks that say that a run is late, or not to be believed, never."""
    tasks = airflow_tasks(monkeypatch)

    assert all(each.dag["max_active_runs"] == 1 and each.dag["catchup"] is False for each in tasks.values())
    assert {name: each.retries for name, each in tasks.items()} == {
        "seawall_ingest.ingest": 3,
        "seawall_ingest.all_in": 0,
        "seawall_audit.run": 3,
        "seawall_audit.alerts": 3,
        "seawall_audit.stand": 0,
        "seawall_maintain.maintain": 3,
        "seawall_alerts.deliver": 3,
        "seawall_late.status": 0,
    }
    assert tasks["seawall_audit.stand"].behind == "alerts"
    assert tasks["seawall_ingest.all_in"].behind == "ingest"
    assert all(each.more.get("retry_delay") for each in tasks.values() if each.retries)


@pytest.mark.parametrize(
    ("task", "failing"),
    [
        ("seawall_audit.run", {55, 24}),
        ("seawall_audit.stand", {4}),
        ("seawall_late.status", {4}),
        ("seawall_ingest.ingest", {3, 4, 24, 55}),
    ],
)
def test_airflow_takes_a_code_for_what_it_means(
    task: str, failing: set[int], host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run found is no failure; that there is no verdict is one, in the two tasks that are for it."""
    command = airflow_tasks(monkeypatch)[task].bash_command
    words = re.sub(r"\{\{.*?\}\}", "seawall", command)

    ended = {}
    for code in (0, 1, 3, 4, 24, 55):
        host.program("seawall", f"exit {code}")
        environ = {"PATH": f"{host.folder}:{os.environ['PATH']}", "HERE": str(host.folder)}
        ended[code] = subprocess.run(["bash", "-c", words], env=environ, check=False).returncode

    assert {code for code, status in ended.items() if status != 0} == failing


@pytest.mark.parametrize("code", [0, 1])
def test_airflow_says_what_is_in_quarantine_by_a_task_that_is_not_tried_again(
    code: int, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line of ingest's task is what `all_in` ends with, as Airflow hands it on."""
    tasks = airflow_tasks(monkeypatch)
    host.program("seawall", f"echo 12 offsets; exit {code}")
    environ = {"PATH": f"{host.folder}:{os.environ['PATH']}", "HERE": str(host.folder)}

    def ended(task: str, said: str) -> subprocess.CompletedProcess[str]:
        words = re.sub(r"\{\{.*?\}\}", said, tasks[f"seawall_ingest.{task}"].bash_command)
        return subprocess.run(
            ["bash", "-c", words], env=environ, check=False, capture_output=True, text=True, timeout=60
        )

    ingest = ended("ingest", "seawall")
    all_in = ended("all_in", ingest.stdout.splitlines()[-1])

    assert (ingest.returncode, all_in.returncode) == (0, code)
