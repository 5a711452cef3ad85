"""The image and the Compose file: what they copy is there, nobody in them is root, and their calls exist."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from seawall.settings import load
from tests.deploy.test_schedules import DEPLOY, parsed

ROOT = DEPLOY.parent
IMAGE = DEPLOY / "image"
SERVICES = {"kafka", "s3"}  # that are not ours


def module_at(path: Path) -> ModuleType:
    """A program without a name that Python would import it by."""
    loader = SourceFileLoader(path.stem.replace("-", "_"), str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def _stages() -> dict[str, list[tuple[str, str]]]:
    """The Dockerfile's steps by stage."""
    found: dict[str, list[tuple[str, str]]] = {}
    steps: list[tuple[str, str]] = []
    for word, rest in module_at(IMAGE / "try-in-chroot").steps((IMAGE / "Dockerfile").read_text()):
        if word == "FROM":
            steps = found.setdefault(rest.partition(" AS ")[2], [])
        steps.append((word, rest))
    return found


def test_what_the_image_copies_is_there_and_reaches_the_builder() -> None:
    """Each source of a COPY exists, and the ignore file, which leaves out all else, lets it through."""
    let_through = {
        line[1:] for line in (IMAGE / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copied = [
        name
        for steps in _stages().values()
        for word, rest in steps
        if word == "COPY" and "--from" not in rest
        for name in rest.split()[:-1]
    ]

    assert len(copied) > 8
    for name in copied:
        assert (ROOT / name).exists(), name
        assert name in let_through, name
    packages = re.search(r"packages = \[(.*)\]", (ROOT / "pyproject.toml").read_text())
    assert packages is not None
    assert {each.strip(' "') for each in packages.group(1).split(",")} <= set(copied)


def test_nobody_in_the_image_is_root() -> None:
    """Each target ends as a user by number; the health check and the entry point are said once, for both."""
    stages = _stages()

    for target in ("slim", "spark"):
        users = [rest for word, rest in [*stages["base"], *stages[target]] if word == "USER"]
        assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", users[-1]), target
        assert stages[target][0] == ("FROM", f"base AS {target}")
    said = dict(stages["base"])
    assert said["ENTRYPOINT"] == '["seawall"]'
    assert 'CMD ["healthy"]' in said["HEALTHCHECK"]


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (["/opt/seawall/bin/python", "/opt/seawall/bin/seawall", "agent"], "http://127.0.0.1:9317/healthz"),
        (["seawall", "serve", "--listen", "x"], "http://127.0.0.1:9320/healthz"),
        (["seawall", "audit", "run"], None),
    ],
)
def test_the_health_check_asks_the_service_that_runs(words: list[str], place: str | None) -> None:
    """By the verb, at the port that is its default; a job is asked nothing; a variable names another."""
    healthy = module_at(IMAGE / "healthy.py")

    assert healthy.url(words, {}) == place
    assert healthy.url(words, {"HEALTH_URL": "http://x/"}) == "http://x/"
    defaults = load(environ={}).settings
    listens = {"agent": defaults.agent.listen, "scaler": defaults.scaler.metrics_listen}
    listens["serve"] = defaults.serve.metrics_listen
    assert {verb: int(at.rpartition(":")[2]) for verb, at in listens.items()} == healthy.PORTS


def test_compose_calls_what_there_is_and_lets_nothing_be_written() -> None:
    """Each verb with its options exists, the settings are taken, log dirs are read-only like all else."""
    told: dict[str, Any] = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())

    assert load(file=DEPLOY / "compose" / "seawall.toml", environ={}).settings.s3.bucket == "seawall"
    ours = {name: each for name, each in told["services"].items() if name not in SERVICES}
    assert {"agent", "serve", "scaler", "ingest", "audit"} <= set(ours)
    for name, each in ours.items():
        assert each["read_only"] is True, name
        assert each["cap_drop"] == ["ALL"], name
        if "entrypoint" not in each and "command" in each:
            parsed([str(word) for word in each["command"]])
    assert "logs:/var/lib/kafka/data:ro" in told["services"]["agent"]["volumes"]


def said_in_clean_roots(program: Path, folder: Path, *asked: str) -> str:
    """What one of the programs that make Debian roots said; it ended well, and `folder` is gone again."""
    mirror = os.environ.get("SEAWALL_TEST_DEBIAN_MIRROR", "http://deb.debian.org/debian")
    done = subprocess.run(
        [sys.executable, str(program), str(folder), *asked, "--mirror", mirror],
        capture_output=True,
        text=True,
        timeout=5000,
        check=False,
    )
    shutil.rmtree(folder, ignore_errors=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.long  # a Debian root and every package into it
@pytest.mark.timeout(5400)
@pytest.mark.skipif(shutil.which("debootstrap") is None, reason="there is no debootstrap here")
@pytest.mark.skipif(os.geteuid() != 0, reason="a root that is entered by chroot takes root")
def test_the_images_steps_work_in_a_clean_root(tmp_path: Path) -> None:
    """Each step of the Dockerfile, in its order; then both images' program runs as their user."""
    assert "slim: " in said_in_clean_roots(IMAGE / "try-in-chroot", tmp_path / "roots")
