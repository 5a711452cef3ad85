"""The one module that goes to the network: runs the Ivy inside the pyspark wheel on a checked-in Ivy file.

It promises nothing about what it fetched; `classpath` checks every jar against its pin.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from seawall.jvm.errors import FetchFailed
from seawall.jvm.java import find_java

FILES = Path(__file__).parent / "ivy"
ATTEMPTS = 2  # what the first one fetched stays in Ivy's cache, so the second goes on from there
ATTEMPT_TIMEOUT_S = 900
CONNECT_TIMEOUT_MS = 20_000
READ_TIMEOUT_MS = 60_000
SHOWN_LINES = 6


def retrieve(
    classpath: str,
    into: Path,
    cache: Path,
    environ: Mapping[str, str] | None = None,
    *,
    ivy_file: Path | None = None,
) -> None:
    """Resolve `ivy/<classpath>.xml`, or another file, into `into`. The caller holds the cache's lock."""
    environ = os.environ if environ is None else environ
    settings = Path(environ.get("SEAWALL_IVY_SETTINGS") or FILES / "ivysettings.xml")
    command = [
        str(find_java(environ).path),
        # Java waits for ever by default.
        f"-Dsun.net.client.defaultConnectTimeout={CONNECT_TIMEOUT_MS}",
        f"-Dsun.net.client.defaultReadTimeout={READ_TIMEOUT_MS}",
        f"-Divy.default.ivy.user.dir={cache}",  # else it also makes ~/.ivy2
        *("-jar", str(_ivy_jar(classpath))),
        *("-settings", str(settings)),
        *("-cache", str(cache)),
        *("-ivy", str(ivy_file or FILES / f"{classpath}.xml")),
        *("-retrieve", f"{into}/[artifact]-[revision](-[classifier]).[ext]"),
        *("-types", "jar", "bundle"),
        "-warn",
    ]
    for _ in range(ATTEMPTS):
        why = _run(command, environ)
        if why is None:
            return
    raise FetchFailed(classpath=classpath, why=why or "Ivy was not run", remedy=ensure_command(classpath))


def ensure_command(classpath: str) -> str:
    """The line that sets one classpath up, in this Python and no other."""
    return f"{sys.executable} -m seawall.jvm ensure {classpath}"


def pyspark_jars() -> Path | None:
    """The folder of pyspark's own jars, the Ivy that we run among them."""
    # Looked up, not imported: importing pyspark takes a second and nothing of it is needed.
    pyspark = importlib.util.find_spec("pyspark")
    folders = pyspark.submodule_search_locations or () if pyspark else ()
    return next((Path(folder) / "jars" for folder in folders), None)


def _ivy_jar(classpath: str) -> Path:
    folder = pyspark_jars()
    for jar in sorted(folder.glob("ivy-*.jar")) if folder else ():
        return jar
    why = "the pyspark package, whose Ivy fetches them, is not installed in this Python"
    raise FetchFailed(classpath=classpath, why=why, remedy="pip install pyspark")


def _run(command: list[str], environ: Mapping[str, str]) -> str | None:
    """None when it went well, else what Ivy said about the failure."""
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environ),
            text=True,
            errors="replace",
            timeout=ATTEMPT_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"Ivy did not finish within {ATTEMPT_TIMEOUT_S} s"
    except OSError as failure:
        return str(failure)
    return None if answer.returncode == 0 else _told(answer.stdout)


def _told(output: str) -> str:
    # Ivy draws progress as lines of dots and frames as lines of colons; what is left is the reason.
    lines = [line.strip() for line in output.splitlines()]
    told = [line for line in lines if line.strip(":.- ") and not line.startswith((".", "::"))]
    return "\n".join(told[-SHOWN_LINES:]) or "Ivy failed and said nothing"
