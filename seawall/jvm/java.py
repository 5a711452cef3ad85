"""Where Java is: JAVA_HOME if it is set, else PATH; 17 or newer, else a typed error with the line to run.

JAVA_HOME is not second-guessed: Spark's own scripts follow it, so falling back to another Java would let one
half of the system run on a Java that the other half refused.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from seawall.jvm.errors import JavaBroken, JavaHomeWrong, JavaMissing, JavaNotInstalled, JavaTooOld

MINIMUM_VERSION = 17  # Kafka 4 brokers and Spark 4 both stop at older ones
VERSION_TIMEOUT_S = 60
INSTALL_TIMEOUT_S = 900
# In the order tried: 17 is what the tests run on, the later ones are what newer releases carry instead.
DEBIAN_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "openjdk-25-jre-headless")

_VERSION = re.compile(r'version "(?:1\.)?(\d+)[^"]*"')
_REMEDIES = {
    "debian": f"Run: sudo apt-get install -y {DEBIAN_PACKAGES[0]}",
    "fedora": "Run: sudo dnf install -y java-21-openjdk-headless",
    "rhel": "Run: sudo dnf install -y java-17-openjdk-headless",
    "suse": "Run: sudo zypper install -y java-17-openjdk-headless",
    "arch": "Run: sudo pacman -S --noconfirm jre17-openjdk-headless",
    "alpine": "Run: sudo apk add openjdk17-jre-headless",
}
_OTHER_REMEDY = f"Install Java {MINIMUM_VERSION} or newer and set JAVA_HOME to it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    path: Path
    version: int  # the feature release: 17, 21, ...


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The Java that everything we start runs on, checked by asking it for its version."""
    environ = os.environ if environ is None else environ
    path = _executable(environ)
    version = _version(path, environ)
    if version < MINIMUM_VERSION:
        raise JavaTooOld(path=str(path), version=version, minimum=MINIMUM_VERSION, remedy=remedy())
    return Java(path=path, version=version)


def ensure_java(say: Callable[[str], None], environ: Mapping[str, str] | None = None) -> Java:
    """The same for set-up: where Java is missing and we are root on a Debian-like system, install it."""
    environ = os.environ if environ is None else environ
    try:
        return find_java(environ)
    except (JavaMissing, JavaTooOld):
        # With JAVA_HOME set, a package would not be the Java that is found: the person who set it decides.
        apt_get = shutil.which("apt-get", path=environ.get("PATH"))
        if environ.get("JAVA_HOME") or apt_get is None or os.geteuid() != 0:
            raise
    _apt_install(apt_get, environ, say)
    return find_java(environ)


def remedy(os_release: Path = Path("/etc/os-release")) -> str:
    """The one line that installs Java on this system."""
    if shutil.which("brew"):
        return "Run: brew install openjdk@17"
    try:
        lines = os_release.read_text(encoding="utf-8").splitlines()
    except OSError:
        return _OTHER_REMEDY
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    systems = f"{fields.get('ID', '')} {fields.get('ID_LIKE', '')}".replace('"', "").split()
    families = {"ubuntu": "debian", "centos": "rhel", "opensuse": "suse"}
    for system in systems:
        known = _REMEDIES.get(families.get(system, system))
        if known:
            return known
    return _OTHER_REMEDY


def _executable(environ: Mapping[str, str]) -> Path:
    java_home = environ.get("JAVA_HOME")
    if java_home:
        path = Path(java_home) / "bin" / "java"
        if not os.access(path, os.X_OK):
            raise JavaHomeWrong(java_home=java_home, minimum=MINIMUM_VERSION, remedy=remedy())
        return path
    found = shutil.which("java", path=environ.get("PATH", os.defpath))
    if found is None:
        raise JavaMissing(remedy=remedy())
    return Path(found)


def _version(path: Path, environ: Mapping[str, str]) -> int:
    try:
        answer = subprocess.run(
            [path, "-version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environ),
            text=True,
            errors="replace",
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise JavaBroken(path=str(path), why=str(failure), remedy=remedy()) from failure
    stated = _VERSION.search(answer.stdout)
    if answer.returncode != 0 or stated is None:
        why = answer.stdout.strip()[:200] or f"it exited with {answer.returncode} and said nothing"
        raise JavaBroken(path=str(path), why=why, remedy=remedy())
    return int(stated[1])


def _apt_install(apt_get: str, environ: Mapping[str, str], say: Callable[[str], None]) -> None:
    quiet = {**environ, "DEBIAN_FRONTEND": "noninteractive"}
    say(f"Java {MINIMUM_VERSION} or newer is missing; installing it with apt-get")
    # A stale package list makes every install fail; a failed update may still leave a usable list.
    last = _apt([apt_get, "update", "-q"], quiet)
    for package in DEBIAN_PACKAGES:
        last = _apt([apt_get, "install", "-q", "-y", "--no-install-recommends", package], quiet)
        if last is None:
            say(f"installed {package}")
            return
    raise JavaNotInstalled(why=last or "no package was tried", remedy=remedy())


def _apt(command: list[str], environ: Mapping[str, str]) -> str | None:
    """None when it went well, else the last thing that apt-get said."""
    try:
        answer = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environ),
            text=True,
            errors="replace",
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        return str(failure)
    if answer.returncode == 0:
        return None
    return answer.stdout.strip().splitlines()[-1] if answer.stdout.strip() else f"exit {answer.returncode}"
