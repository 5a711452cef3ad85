"""The peer of bench/workers.py made ready: its jars as pinned, and parallel_consumer/Peer.java compiled."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from seawall.jvm import ivy
from seawall.jvm.cache import cache_dir, exclusive
from seawall.jvm.java import find_java
from seawall.jvm.pins import differences, read_pins

FOLDER = Path(__file__).parent / "parallel_consumer"
NAME = "bench-parallel-consumer"


def peer_command(classes: Path) -> list[str]:
    """The start of a command that runs Peer; it is compiled into `classes`."""
    jars = os.pathsep.join(str(jar) for jar in sorted(_jars().iterdir()))
    java = find_java().path
    javac = Path(java).resolve().with_name("javac")
    if not javac.exists():
        raise SystemExit(
            "bench: the peer is compiled by javac, and this Java has none; install a JDK of 17 or newer"
        )
    subprocess.run([javac, "-cp", jars, "-d", classes, FOLDER / "Peer.java"], check=True)
    return [str(java), "-cp", f"{classes}{os.pathsep}{jars}", "Peer"]


def _jars() -> Path:
    """Fetched once, and checked each time."""
    pins = read_pins(NAME, FOLDER / "jars.sha256")
    folder = cache_dir() / "jars" / f"{NAME}-{pins.key}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(folder.parent / ".lock", lambda: None):
        if differences(pins, folder):
            work = Path(tempfile.mkdtemp(prefix=f".{NAME}-", dir=folder.parent))
            ivy.retrieve(NAME, work, cache_dir() / "ivy", ivy_file=FOLDER / "ivy.xml")
            if unlike := differences(pins, work):
                raise SystemExit(f"bench: not the pinned jars: {'; '.join(map(str, unlike))}")
            shutil.rmtree(folder, ignore_errors=True)
            work.rename(folder)
    return folder
