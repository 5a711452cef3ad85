"""The folder of a package, written whole or not at all, the same bytes whenever it is made of the same.

Owns the layout that `__init__` describes. Invariant: what is there was checked; SHA256SUMS is written last.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

from seawall.jvm import classpath
from seawall.spark_package.errors import FolderNotEmpty

ENTRY = "entry.py"
ENVIRONMENT = "environment.tar.gz"
JARS = "jars"
SUMS = "SHA256SUMS"
READ_BYTES = 1024 * 1024
CLASSPATHS = ("spark", "s3a")
ENTRY_TEXT = '''\
"""What spark-submit starts: Seawall, out of the environment that came with it."""

import sys

from seawall.spark_package.entry import main

sys.exit(main(sys.argv[1:]))
'''
# Not a virtual environment: that one names the folder of the Python that it was made with, and ends with it.
PYTHON_TEXT = """\
#!/bin/sh
# Python {version} with the packages beside it, wherever they were unpacked. PACKAGED_PYTHON names another.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
for python in ${{PACKAGED_PYTHON:-}} python{version} /usr/local/bin/python{version} python3; do
	if "$python" -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != "{version}")' 2>/dev/null; then
		PYTHONPATH=$here/lib${{PYTHONPATH:+:$PYTHONPATH}} exec "$python" "$@"
	fi
done
echo "seawall: there is no Python {version} on this host, for which these packages were made" >&2
exit 127
"""


def make(folder: Path, fill: Callable[[Path], None]) -> None:
    """A package in `folder`, in place of one that was there; `fill` puts what Python needs into a folder."""
    if folder.exists() and any(folder.iterdir()) and not (folder / SUMS).is_file():
        raise FolderNotEmpty(folder=str(folder))
    jars = [jar for name in CLASSPATHS for jar in classpath.ensure(name)]  # each held against its pin
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".seawall-package-", dir=folder.parent) as work:
        environment, made = Path(work) / "environment", Path(work) / "package"
        (environment / "lib").mkdir(parents=True)
        (environment / "bin").mkdir()
        python = environment / "bin" / "python"
        python.write_text(PYTHON_TEXT.format(version=f"{sys.version_info[0]}.{sys.version_info[1]}"))
        python.chmod(0o755)
        fill(environment / "lib")
        (made / JARS).mkdir(parents=True)
        pack(environment, made / ENVIRONMENT)
        for jar in jars:
            shutil.copyfile(jar, made / JARS / jar.name)
        (made / ENTRY).write_text(ENTRY_TEXT, encoding="utf-8")
        sums = [f"{_sha256(each)}  {each.relative_to(made)}\n" for each in files_of(made)]
        (made / SUMS).write_text("".join(sums), encoding="utf-8")
        if folder.exists():
            folder.rename(Path(work) / "before")
        made.rename(folder)


def files_of(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


def pack(folder: Path, into: Path) -> None:
    """In the order of names, of nobody and at no time: the same archive of the same files."""
    with (
        into.open("wb") as out,
        gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0, compresslevel=4) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as written,
    ):
        for each in files_of(folder):
            entry = tarfile.TarInfo(str(each.relative_to(folder)))
            entry.size = each.stat().st_size
            entry.mode = 0o755 if each.stat().st_mode & 0o100 else 0o644
            with each.open("rb") as content:
                written.addfile(entry, content)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while piece := content.read(READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()
