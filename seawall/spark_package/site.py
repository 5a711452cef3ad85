"""Puts the packages of the environment into a folder: fetched by pip under their pinned hashes, or copied.

What is copied is held to the pinned version, and each file to the hash that its distribution was installed
with. Seawall itself is copied from where it runs.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib import import_module, metadata
from pathlib import Path

from seawall.spark_package.contents import blocks, needed, versions
from seawall.spark_package.errors import InstallFailed, NotAsPinned, PinsMissing

OURS = ("audit_engine", "backup", "rules", "seawall", "tiering", "workers")
PINS = Path(__file__).parents[2] / "requirements" / "user.txt"
INSTALL_TIMEOUT_S = 1800
SHOWN = 12


def requires(name: str) -> Iterable[str] | None:
    """Of what is installed here."""
    try:
        return metadata.requires(name) or ()
    except metadata.PackageNotFoundError:
        return None


def install(pins_file: Path, into: Path) -> None:
    """From the index, as `pip` is set up here: nothing whose hash is not in the file."""
    if not pins_file.is_file():
        raise PinsMissing(path=str(pins_file))
    pinned = blocks(pins_file.read_text(encoding="utf-8"))
    wanted = sorted(needed("seawall", requires))
    _refuse([f"{name} is needed, and not pinned" for name in wanted if name not in pinned])
    with tempfile.TemporaryDirectory(prefix="seawall-pins-") as folder:
        chosen = Path(folder) / "chosen.txt"
        chosen.write_text("".join(pinned[name] for name in wanted), encoding="utf-8")
        words = ["--disable-pip-version-check", "--no-input", "--quiet", "install", "--no-deps"]
        words += ["--require-hashes", "--only-binary=:all:", "--no-compile", "--target", str(into)]
        done = subprocess.run(
            [sys.executable, "-m", "pip", *words, "-r", str(chosen)],
            capture_output=True,
            text=True,
            timeout=INSTALL_TIMEOUT_S,
            check=False,
        )
    if done.returncode != 0:
        raise InstallFailed(why="\n".join(done.stderr.strip().splitlines()[-SHOWN:]))


def copy_installed(pins_file: Path | None, into: Path) -> None:
    """From the Python that runs this. Without a file of pins, at the versions that are here."""
    pinned = blocks(pins_file.read_text(encoding="utf-8")) if pins_file and pins_file.is_file() else None
    unlike: list[str] = []
    for name in sorted(needed("seawall", requires)):
        found = metadata.distribution(name)
        if pinned is not None and found.version not in versions(pinned.get(name, "")):
            unlike.append(f"{name} is {found.version} here, which is not pinned")
            continue
        unlike += _copy(found, into)
    _refuse(unlike)


def _copy(found: metadata.Distribution, into: Path) -> list[str]:
    """The files of a distribution below its site folder; what was not as installed."""
    unlike = []
    for path in found.files or ():
        if ".." in path.parts or path.is_absolute() or path.suffix == ".pyc":  # a script's place is not ours
            continue
        content = Path(str(found.locate_file(path))).read_bytes()
        if path.hash is not None:
            digest = hashlib.new(path.hash.mode, content).digest()
            if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != path.hash.value:
                unlike.append(f"{path} of {found.name} is not as it was installed")
        target = into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return unlike


def copy_seawall(into: Path) -> None:
    """Our own packages, and the little metadata that says the version."""
    skip = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in OURS:
        file = import_module(name).__file__
        assert file is not None, f"{name} is a package with a file"
        shutil.copytree(Path(file).parent, into / name, ignore=skip)
    try:
        version = metadata.version("seawall")
    except metadata.PackageNotFoundError:
        return
    folder = into / f"seawall-{version}.dist-info"
    folder.mkdir()
    said = f"Metadata-Version: 2.1\nName: seawall\nVersion: {version}\n"
    (folder / "METADATA").write_text(said, encoding="utf-8")


def _refuse(differences: list[str]) -> None:
    if differences:
        more = [f"and {len(differences) - SHOWN} more"] if len(differences) > SHOWN else []
        raise NotAsPinned(differences="\n".join([*differences[:SHOWN], *more]))
