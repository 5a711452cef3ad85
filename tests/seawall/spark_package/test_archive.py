"""A package is whole, the same whenever it is made of the same, and runs where it is unpacked."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
from importlib import metadata
from pathlib import Path

import pytest

from seawall.jvm.classpath import jars
from seawall.spark_package import archive, site, submit
from seawall.spark_package.errors import FolderNotEmpty
from tests.seawall.spark_package.submitted import unpack
from tests.terraform.tools import FOLDER as TERRAFORM


def _fill(into: Path) -> None:
    site.copy_seawall(into)
    (into / "beside.py").write_text("FOUND = 'beside'\n")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package without other people's packages."""
    folder = tmp_path_factory.mktemp("package") / "one"
    archive.make(folder, _fill)
    return folder


@pytest.mark.jvm
def test_a_package_has_the_jars_as_pinned_and_its_sums(made: Path) -> None:
    """Each jar of both classpaths, no bundle of an SDK; SHA256SUMS is right about every file."""
    found = {each.name for each in (made / archive.JARS).iterdir()}
    lines = (made / archive.SUMS).read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}

    assert found == {each.name for name in ("spark", "s3a") for each in jars(name)}
    assert not any("bundle" in name for name in found)
    assert {str(each.relative_to(made)) for each in archive.files_of(made)} == {*sums, archive.SUMS}
    for name, digest in sums.items():
        assert hashlib.sha256((made / name).read_bytes()).hexdigest() == digest


def test_the_same_is_packed_to_the_same_bytes(tmp_path: Path) -> None:
    """Made anew elsewhere, in another order and later: not a byte of the archive differs."""
    for name, files, at_s in (("one", ("a", "b"), 1_000_000), ("two", ("b", "a"), 2_000_000)):
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text(file)
            os.utime(tmp_path / name / file, (at_s, at_s))
        archive.pack(tmp_path / name, tmp_path / f"{name}.tar.gz")

    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()


@pytest.mark.jvm
def test_its_python_finds_what_lies_beside_it(made: Path, tmp_path: Path) -> None:
    """Unpacked under another path, by the Python of this host and nothing that is installed in it."""
    unpack(made, tmp_path / "environment")
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    said = "import beside, sys, seawall.version as v; print(beside.FOUND, v.version(), v.__file__)"

    done = subprocess.run(
        ["environment/bin/python", "-c", said],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PACKAGED_PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found, version, file = done.stdout.split()
    assert (found, version) == ("beside", metadata.version("seawall"))
    assert Path(file).is_relative_to(tmp_path / "environment" / "lib")


@pytest.mark.jvm
def test_a_folder_of_somebody_elses_is_left_alone(made: Path, tmp_path: Path) -> None:
    """What is no package is not replaced; one that was made before is."""
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(FolderNotEmpty):
        archive.make(tmp_path, _fill)
    assert [each.name for each in tmp_path.iterdir()] == ["precious.txt"]

    archive.make(made, lambda into: (into / "other.py").touch())
    assert (made / archive.SUMS).is_file()
    with tarfile.open(made / archive.ENVIRONMENT) as packed:
        assert packed.getnames() == ["bin/python", "lib/other.py"]


def test_terraforms_example_takes_what_is_made() -> None:
    """The entry point and the folder that the example names are a package's own."""
    example = (TERRAFORM / "examples" / "single-account" / "main.tf").read_text()

    assert f'"s3://${{var.packages}}/seawall/{archive.ENTRY}"' in example
    assert re.search(r"submit_parameters += var\.submit_parameters\n", example)
    told = submit.emr_parameters("s3://packages/seawall", ["a.jar", "b.jar"])
    assert told.startswith("--archives s3://packages/seawall/environment.tar.gz#environment --jars ")
    assert "s3://packages/seawall/jars/a.jar,s3://packages/seawall/jars/b.jar --conf " in told
