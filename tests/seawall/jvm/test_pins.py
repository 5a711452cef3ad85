"""The lock files: read strictly, and any difference from them named."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from seawall.jvm import classpath, ivy
from seawall.jvm.errors import LockUnreadable
from seawall.jvm.pins import Difference, differences, read_pins, sha256, write_pins

A = "a" * 64


def _written(folder: Path, text: str) -> Path:
    lock = folder / "x.sha256"
    lock.write_text(text, encoding="utf-8")
    return lock


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        (f"{A}  one.jar\n{A} two.jar\n", 2),
        (f"{A}  one.jar\n{A}  one.jar\n", 2),
        (f"{A}  ../one.jar\n", 1),
        (f"{A}  .jar\n", 1),
        (f"{A[:-1]}  one.jar\n", 1),
        (f"{A.upper()}  one.jar\n", 1),
    ],
)
def test_anything_but_hash_and_jar_is_refused_by_line(tmp_path: Path, text: str, line: int) -> None:
    """A lock that pins nothing, twice, elsewhere or with less than a whole hash is not read."""
    with pytest.raises(LockUnreadable) as refusal:
        read_pins("x", _written(tmp_path, text))

    assert refusal.value.line == line


def test_other_pins_have_another_key(tmp_path: Path) -> None:
    """A changed lock names another folder, so jars of two versions are never mixed."""
    old = read_pins("x", _written(tmp_path, f"{A}  one-1.jar\n"))
    new = read_pins("x", _written(tmp_path, f"{A}  one-2.jar\n"))

    assert old.key != new.key


def test_what_was_pinned_agrees_and_sha256sum_agrees(tmp_path: Path) -> None:
    """Pins that we write hold for the folder they were written from, also by sha256sum's account."""
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in ("b.jar", "a.jar"):
        (jars / name).write_bytes(name.encode())
    lock = tmp_path / "x.sha256"

    write_pins(lock, jars)

    assert differences(read_pins("x", lock), jars) == []
    if shutil.which("sha256sum"):
        subprocess.run(
            ["sha256sum", "--check", "--strict", lock], cwd=jars, check=True, stdout=subprocess.DEVNULL
        )


def test_missing_changed_and_foreign_jars_are_each_named(tmp_path: Path) -> None:
    """Every jar that is not as pinned is reported, with the hash expected and the hash found."""
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in ("same.jar", "changed.jar", "missing.jar"):
        (jars / name).write_bytes(name.encode())
    lock = tmp_path / "x.sha256"
    write_pins(lock, jars)
    pinned = {path.name: sha256(path) for path in jars.iterdir()}
    (jars / "missing.jar").unlink()
    (jars / "changed.jar").write_bytes(b"changed")
    (jars / "foreign.jar").write_bytes(b"foreign")

    found = differences(read_pins("x", lock), jars)

    assert found == [
        Difference(jar="changed.jar", expected=pinned["changed.jar"], actual=sha256(jars / "changed.jar")),
        Difference(jar="foreign.jar", expected=None, actual=sha256(jars / "foreign.jar")),
        Difference(jar="missing.jar", expected=pinned["missing.jar"], actual=None),
    ]


@pytest.mark.parametrize("name", classpath.NAMES)
def test_each_classpath_has_an_ivy_file_and_pins(name: str) -> None:
    """Every name that can be asked for has both of its checked-in files, and the pins can be read."""
    assert (ivy.FILES / f"{name}.xml").is_file()
    assert read_pins(name, ivy.FILES / f"{name}.sha256").sha256_by_jar


def test_no_version_is_pinned_twice_in_one_classpath() -> None:
    """One version of a library is loaded: no two jars of a classpath differ in their version alone."""
    for name in classpath.NAMES:
        jars = read_pins(name, ivy.FILES / f"{name}.sha256").sha256_by_jar
        libraries = [jar.rsplit("-", 1)[0] for jar in jars if not jar.endswith("-test.jar")]
        assert len(set(libraries)) == len(libraries), name


def test_spark_jars_hold_nothing_that_pyspark_has() -> None:
    """What is put beside pyspark's own jars brings no second version of any of them."""
    spec = ivy.pyspark_jars()

    assert spec is not None
    own = {jar.name.rsplit("-", 1)[0] for jar in spec.glob("*.jar")}
    for name in ("spark", "s3a"):
        added = {jar.rsplit("-", 1)[0] for jar in read_pins(name, ivy.FILES / f"{name}.sha256").sha256_by_jar}
        assert added & own == set()
