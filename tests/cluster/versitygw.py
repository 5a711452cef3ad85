"""A real S3 server for the tests: versitygw over a folder of files, on 127.0.0.1.

Built once with `go install` into the cache folder (`python -m tests.cluster.versitygw` does it ahead of a
run). Where there is no Go, or no way to fetch, the tests that ask for `versitygw` are skipped with that
reason. Objects are files, versions are files in a second folder, and what S3 keeps beside them are extended
attributes: where the temporary folder's file system has none, that is a reason to skip as well.

Where it is not S3 (v1.8.0, measured): `If-None-Match: *` on CopyObject is ignored, and on the other writes a
delete marker counts as an object.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from seawall.jvm.cache import cache_dir, exclusive
from seawall.local.ports import ReservedPort
from seawall.local.process import Child

VERSION = "v1.8.0"
MODULE = f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"
BUILD_DEADLINE_S = 900.0
START_DEADLINE_S = 30.0
ACCESS_KEY_ID = "seawall-tests"
SECRET_ACCESS_KEY = "seawall-tests"
REGION = "us-east-1"


class NotToBeHad(Exception):
    """Why there is no versitygw on this machine."""


class VersityGateway:
    """One server; each test makes a bucket of its own."""

    def __init__(self, program: Path, folder: Path, *, has_users: bool = False) -> None:
        """`has_users`: it knows more than its root, each as `add_user` made it."""
        self._program = program
        self._port = ReservedPort()
        self._buckets = 0
        self._session = boto3.Session(
            aws_access_key_id=ACCESS_KEY_ID, aws_secret_access_key=SECRET_ACCESS_KEY, region_name=REGION
        )
        self.endpoint_url = f"http://{self._port.address}"
        objects, versions = folder / "objects", folder / "versions"
        objects.mkdir(parents=True)
        versions.mkdir()
        users = folder / "users"
        users.mkdir()
        self._process = Child(
            name="versitygw",
            argv=[
                str(program),
                *("--port", self._port.address, "--region", REGION),
                *("--quiet", "--keep-alive", "--health", "/health"),
                *(("--iam-dir", str(users)) if has_users else ()),
                *("posix", "--versioning-dir", str(versions), str(objects)),
            ],
            log=folder / "versitygw.log",
            env=os.environ | {"ROOT_ACCESS_KEY": ACCESS_KEY_ID, "ROOT_SECRET_KEY": SECRET_ACCESS_KEY},
        )

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def session(self) -> boto3.Session:
        return self._session

    def new_bucket(self, *, versioned: bool = True) -> str:
        """The name of an empty bucket; with versions it has object lock as well."""
        self._buckets += 1
        name = f"bucket-{self._buckets}"
        client = self.session().client("s3", endpoint_url=self.endpoint_url)
        client.create_bucket(Bucket=name, ObjectLockEnabledForBucket=versioned)
        if versioned:
            client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        return name

    def add_user(self, name: str) -> boto3.Session:
        """Somebody who may nothing but what a bucket's policy says; the name is the access key, too."""
        admin = [str(self._program), "admin", "--access", ACCESS_KEY_ID, "--secret", SECRET_ACCESS_KEY]
        made = ["create-user", "--access", name, "--secret", name, "--role", "user"]
        subprocess.run(
            [*admin, "--endpoint-url", self.endpoint_url, "--region", REGION, *made],
            capture_output=True,
            timeout=60,
            check=True,
        )
        return boto3.Session(aws_access_key_id=name, aws_secret_access_key=name, region_name=REGION)

    def __enter__(self) -> VersityGateway:
        self._process.start()
        self._process.wait_until_ready(
            self._answers, wanted=f"answering at {self.endpoint_url}", deadline_s=START_DEADLINE_S
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop()
        self._port.release()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.endpoint_url}/health", timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, TimeoutError):
            return False


def program() -> Path:
    """Where the program is, built if need be. Raises NotToBeHad."""
    folder = cache_dir() / "tools" / f"versitygw-{VERSION}"
    built = folder / "versitygw"
    if built.exists():
        return built
    go = shutil.which("go")
    if go is None:
        raise NotToBeHad(f"versitygw is built with Go, and there is no `go` here (for {MODULE})")
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(folder / ".lock", lambda: None):
        if not built.exists():
            _build(go, folder)
    return built


def _build(go: str, folder: Path) -> None:
    unfinished = folder / ".building"
    try:
        done = subprocess.run(
            [go, "install", MODULE],
            env=os.environ | {"GOBIN": str(unfinished), "GOFLAGS": ""},
            cwd=folder,  # not in a folder whose go.mod could have a say
            capture_output=True,
            text=True,
            timeout=BUILD_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotToBeHad(f"`go install {MODULE}` did not end within {BUILD_DEADLINE_S:g} s") from None
    if done.returncode != 0:
        raise NotToBeHad(f"`go install {MODULE}` failed: {done.stderr.strip()[-500:]}")
    (unfinished / "versitygw").rename(folder / "versitygw")


def has_attributes(folder: Path) -> bool:
    probe = folder / "attributes"
    probe.touch()
    try:
        os.setxattr(probe, "user.seawall", b"1")
    except (OSError, AttributeError):  # Python has it on Linux only
        return False
    return True


@pytest.fixture(scope="session")
def versitygw(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VersityGateway]:
    """A real S3 server; no Java needed."""
    folder = tmp_path_factory.mktemp("versitygw")
    if not has_attributes(folder):
        pytest.skip(f"the file system of {folder} has no extended attributes, which versitygw needs")
    try:
        gateway = VersityGateway(program(), folder / "store")
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    with gateway:
        yield gateway


if __name__ == "__main__":
    try:
        print(program())  # noqa: T201 a program's output
    except NotToBeHad as reason:
        sys.exit(str(reason))
