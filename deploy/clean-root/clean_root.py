"""A clean Debian root made with debootstrap, and commands inside of it: no daemon, and nothing stays mounted.

What this machine needs to reach packages is handed on, and no more: apt's and pip's settings, its own
certificates, the variables that name mirrors and proxies. Each command runs in mount and process namespaces
of its own: what it mounted and every process that it left are gone with it, and the folder can be removed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HANDED_ON = (
    "PIP_CERT",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "SEAWALL_IVY_SETTINGS",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
SETTINGS = ("apt/apt.conf.d", "apt/sources.list.d", "hosts", "pip.conf", "resolv.conf")
CERTIFICATES = "usr/local/share/ca-certificates"  # what this machine trusts beside Debian's own
# What a machine has besides its files: a root that is a mount (without, Java cannot say what room there is
# and Kafka tells of no log dir), processes, memory that they share, terminals. $3 names what alone may be
# written to, of a root that is read-only otherwise.
MOUNTS = """
mount --bind "$0" "$0"
if [ -n "$3" ]; then
  for each in $3; do mount --bind "$0$each" "$0$each"; done
  mount -o remount,bind,ro "$0"
fi
mount -t proc proc "$0/proc"
mount -t tmpfs tmpfs "$0/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts"
exec chroot --userspec="$1" "$0" /bin/sh -ec "$2"
"""


def make(folder: Path, suite: str, mirror: str) -> None:
    """Debian's smallest set of packages, and how this machine reaches what else there is."""
    subprocess.run(
        ["debootstrap", "--variant=minbase", suite, str(folder), mirror],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    for name in ("shm", "pts"):
        (folder / "dev" / name).mkdir(exist_ok=True)
    for name in SETTINGS:
        found, into = Path("/etc") / name, folder / "etc" / name
        if found.is_dir():
            shutil.copytree(found, into, dirs_exist_ok=True)
        elif found.is_file():
            shutil.copy(found, into)
    trusted = Path("/") / CERTIFICATES
    if any(trusted.glob("**/*.crt")):
        shutil.copytree(trusted, folder / CERTIFICATES, dirs_exist_ok=True)
        # Found by whoever installs ca-certificates later, Java among them; pip asks before anybody did.
        install(folder, ["ca-certificates"])


def install(folder: Path, packages: Sequence[str]) -> None:
    names = " ".join(shlex.quote(name) for name in packages)
    run(folder, f"apt-get -q update && apt-get -q install -y --no-install-recommends {names}", quiet=True)


def run(
    folder: Path,
    command: str,
    *,
    env: Mapping[str, str] | None = None,
    user: str = "0:0",
    at: str = "/",
    quiet: bool = False,
    writable: Sequence[str] = (),
) -> None:
    """One command of a shell, to its end; raises if it fails. With `writable` all else is read-only."""
    given = {
        "PATH": PATH,
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "DEBIAN_FRONTEND": "noninteractive",
        **(env or {}),
    }
    given |= {name: os.environ[name] for name in HANDED_ON if name in os.environ}
    words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", MOUNTS, str(folder)]
    done = subprocess.run(
        [*words, user, f"cd {shlex.quote(at)} && {command}", " ".join(writable)],
        env=given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        if done.stdout:
            print("\n".join(done.stdout.splitlines()[-20:]), flush=True)  # noqa: T201
        raise subprocess.CalledProcessError(done.returncode, command)


def size_mib(*paths: Path) -> int:
    """What they hold on disk, each file once."""
    there = [str(path) for path in paths if path.exists()]
    if not there:
        return 0
    told = subprocess.run(["du", "-smxc", *there], capture_output=True, text=True, check=False).stdout
    return int(told.splitlines()[-1].split()[0])
