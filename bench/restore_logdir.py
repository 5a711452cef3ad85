"""Restore 6 GiB of segments into a stopped broker's log dir: against `s5cmd cp` of the same objects.

96 segments of 64 MiB in batches of 16 KiB, from versitygw on this machine to a folder in memory, where there
is room, so that no tool waits for this machine's disk. s5cmd copies the `.log` objects and checks nothing, at
its own defaults for connections. We read the same versions, hold each batch against its CRC and the chain of
offsets, the whole against its CRC-64 and its record, read the `.aux`, sync each file, and move all of it in
by journal. Each runs as its users run it, start of the interpreter included.
"""

from __future__ import annotations

import os
import shutil
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.harness import Ran, compare, run
from seawall import collecting

if TYPE_CHECKING:
    from tests.cluster.versitygw import VersityGateway

TOPIC, PARTITION = "bench", 0
TIMES = 6  # the same GiB, further up the log each time
MEASURED_WORKERS = 4
_BASE = struct.Struct(">q")


def main() -> None:
    # And with it the tests' servers, which are not for the process that is measured.
    from bench.upload import _environment, _peers, _segments, _server

    tools, sources = _peers(), _segments()
    with _server() as (gateway, objects):
        os.environ |= _environment(gateway.endpoint_url)
        bucket = gateway.new_bucket()
        with tempfile.TemporaryDirectory(dir=objects.parent) as folder:
            plan = Path(folder) / "plan"
            _fill(gateway, bucket, sources, plan)
            _compare(gateway, bucket, tools, Path(folder), plan, sources)


def _compare(
    gateway: VersityGateway, bucket: str, tools: Path, folder: Path, plan: Path, sources: Path
) -> None:
    total = TIMES * sum(path.stat().st_size for path in sources.iterdir())
    peaks: list[Ran] = []

    def measure(command_of: Callable[[Path], list[object]]) -> float:
        into = folder / "into"
        log_dir = _log_dir(into, plan)
        ran = run(command_of(log_dir))
        peaks.append(ran)
        found = sum(path.stat().st_size for path in into.rglob("*.log"))
        assert found == total, (found, total)
        shutil.rmtree(into)
        return ran.wall_s

    compare(
        "restore_logdir",
        "s5cmd cp",
        ours=lambda: measure(
            lambda log_dir: [
                *(sys.executable, "-m", "bench.restore_logdir", gateway.endpoint_url, bucket),
                *(log_dir, plan),
            ]
        ),
        theirs=lambda: measure(
            lambda log_dir: [
                *(tools / "s5cmd", "--endpoint-url", gateway.endpoint_url, "cp"),
                *(f"s3://{bucket}/*.log", f"{log_dir}/{TOPIC}-{PARTITION}/"),
            ]
        ),
        more=lambda: {"mib": round(total / 2**20), "peak_bytes": max(ran.peak_bytes for ran in peaks[::2])},
    )


def _fill(gateway: VersityGateway, bucket: str, sources: Path, plan: Path) -> None:
    """Upload the segments as the agent does; the pieces of a plan for them."""
    from backup.plan import Origin, Piece
    from backup.plan.file import write_plan
    from rules.events import RestoreTarget
    from tests.backup.lost_logs import plan_for
    from tests.tiering.segments.strategies import segment
    from tiering.log.checkpoints import EpochStart
    from tiering.log.segment import base_offset_of
    from tiering.segments.records import SegmentObjects
    from tiering.store.aux_file import AuxContents, encode_aux
    from tiering.store.patient import patient
    from tiering.store.s3 import S3Store, S3StoreSettings
    from tiering.store.upload import Uploader

    store = patient(S3Store(S3StoreSettings(bucket=bucket, endpoint_url=gateway.endpoint_url)))
    found: list[Piece] = []
    with Uploader(store) as uploader:
        for number, path in enumerate(_further_up(sources, plan.parent), start=1):
            base = base_offset_of(path.name)
            descriptor = os.open(path, os.O_RDONLY)
            done = uploader.upload_segment(path.name, descriptor, base_offset=base)
            os.close(descriptor)
            path.unlink()
            scan = done.scan
            epochs = tuple(EpochStart(*each) for each in scan.epochs)
            aux = encode_aux(
                AuxContents(
                    base_offset=base,
                    end_offset=scan.data_end,
                    offset_index=b"",
                    time_index=b"",
                    transaction_index=None,
                    producer_snapshot=None,
                    leader_epochs=epochs,
                    aborted=(),
                )
            )
            named = uploader.upload_bytes(f"{path.stem}.aux", aux)
            record = replace(
                segment(
                    number,
                    base,
                    scan.data_end,
                    epochs=tuple((each.epoch, each.start_offset) for each in epochs),
                ),
                key_stem=path.stem,
                size_bytes=scan.size_bytes,
                record_count=scan.record_count,
                batch_count=scan.batch_count,
                max_timestamp_ms=scan.max_timestamp_ms,
                objects=SegmentObjects(log=done.ref, aux=named, json=named._replace(key=f"{path.stem}.json")),
            )
            found.append(Piece(start=base, end=scan.data_end, origin=Origin.TIER, record=record))
    write_plan(plan, plan_for(tuple(found), RestoreTarget.LOG_DIRECTORY))


def _further_up(sources: Path, folder: Path) -> Iterator[Path]:
    """The segments, TIMES times, each time behind the last: a batch's base offset is not under its CRC."""
    from tiering.log.segment import base_offset_of, scan_segment
    from tiering.log.windows import walk

    paths = sorted(sources.iterdir())
    end = scan_segment(paths[-1]).data_end
    for shift in range(0, TIMES * end, end):
        for path in paths:
            content = bytearray(path.read_bytes())
            for position in walk(content, len(content))[:-1]:
                [base] = _BASE.unpack_from(content, position)
                _BASE.pack_into(content, position, base + shift)
            moved = folder / f"{base_offset_of(path.name) + shift:020d}.log"
            moved.write_bytes(content)
            yield moved


def _log_dir(into: Path, plan: Path) -> Path:
    """A stopped broker's, whose log begins where the pieces end."""
    from backup.plan.file import read_plan

    log = read_plan(plan).body.pieces[-1]
    directory = into / "logs" / f"{TOPIC}-{PARTITION}"
    directory.mkdir(parents=True)
    properties = f"version=1\ncluster.id={log.record.log.cluster_id}\nnode.id=1\n"
    (into / "logs" / "meta.properties").write_text(properties)
    (into / "logs" / ".kafka_cleanshutdown").touch()
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {log.record.log.topic_id}\n")
    (directory / "leader-epoch-checkpoint").write_text(f"0\n1\n0 {log.end}\n")
    (directory / f"{log.end:020d}.log").touch()
    return into / "logs"


def _ours(endpoint_url: str, bucket: str, log_dir: Path, plan: Path) -> None:
    with collecting.imports():
        from backup.catalogue.bytes import StoredPieces
        from backup.logdir.apply import Restore, restore
        from backup.logdir.replica import Wanted
        from backup.plan.file import read_plan
        from tiering.store.patient import patient
        from tiering.store.s3 import S3Store, S3StoreSettings

    found = read_plan(plan).body.pieces
    log = found[0].record.log
    store = patient(S3Store(S3StoreSettings(bucket=bucket, endpoint_url=endpoint_url)))
    wanted = Wanted(log=log._replace(partition=PARTITION), topic=TOPIC)
    asked = Restore(plan_id="bench", wanted=wanted, pieces=found, start=found[0].start)
    restore(log_dir, asked, StoredPieces(store), workers=MEASURED_WORKERS)


if __name__ == "__main__":
    collecting.end_at_once()  # as the command line does
    _ours(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
