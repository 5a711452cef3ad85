"""`seawall log`: what a user sees, and the exit code that a script acts on."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

from tests.encode.record_batch import PlainRecord, encode_batch, encode_control_batch
from tests.encode.segment import T0_MS, batches, plain_records, write_segment
from tests.seawall.cli.calling import Called, call


def seawall(*arguments: object) -> Called:
    """Run the program with these arguments."""
    return call(*map(str, arguments))


def json_lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Offsets 0 to 27 in three segments."""
    path = tmp_path / "orders-0"
    path.mkdir()
    for base in (0, 9, 18):
        write_segment(path, base, batches(base, count=3))
    return path


def test_a_sound_partition_exits_0_and_says_what_was_read(partition: Path) -> None:
    """One line of verdict on stdout, nothing on stderr, exit 0."""
    ran = seawall("log", "verify", partition)

    assert (ran.status, ran.stderr) == (0, "")
    assert ran.stdout.startswith("verified: 3 verified")
    assert "27 records" in ran.stdout


def test_damage_exits_1_and_names_file_byte_and_offset(partition: Path) -> None:
    """The line of a damaged segment has all that a person needs to look."""
    segment = partition / f"{9:020d}.log"
    content = bytearray(segment.read_bytes())
    content[70] ^= 1
    segment.write_bytes(content)

    ran = seawall("log", "verify", partition)

    assert ran.status == 1
    assert str(segment) in ran.stdout
    assert "crc_mismatch at byte 0, offset 9" in ran.stdout
    assert "damaged: 1 failed, 2 verified" in ran.stdout


def test_json_gives_one_object_a_file_and_the_totals(partition: Path) -> None:
    """A program gets ranges, problems and totals as values."""
    (partition / f"{9:020d}.log").unlink()

    ran = seawall("log", "verify", "--json", partition)

    assert ran.status == 1
    *files, totals = json_lines(ran.stdout)
    assert [(f["outcome"], f["base_offset"], f["data_end"], f["end_offset"]) for f in files] == [
        ("failed", 0, 9, 18),
        ("verified", 18, 27, None),
    ]
    assert files[0]["problems"][0]["kind"] == "hole"
    assert totals["totals"] | {"bytes": 0} == {
        "verified": 1,
        "failed": 1,
        "skipped": 0,
        "inconclusive": 0,
        "bytes": 0,
        "records": 18,
        "missing_offsets": 0,
    }


def test_the_user_can_say_that_a_log_was_compacted(partition: Path) -> None:
    """With --compacted possible the same gap is counted, and the exit code is 0."""
    (partition / f"{9:020d}.log").unlink()

    ran = seawall("log", "verify", "--all", "--compacted", "possible", partition)

    assert ran.status == 0
    assert "9 offsets compacted away" in ran.stdout


def test_nothing_looked_at_is_not_a_pass(tmp_path: Path) -> None:
    """An empty partition directory exits 4: nothing was verified."""
    (tmp_path / "orders-0").mkdir()

    ran = seawall("log", "verify", tmp_path / "orders-0")

    assert ran.status == 4
    assert "cannot tell" in ran.stdout


def test_a_log_dir_may_be_called_as_a_partition_is(tmp_path: Path) -> None:
    """`logs-2` with a meta.properties is a log dir, not partition 2 of topic `logs`."""
    log_dir = tmp_path / "logs-2"
    (log_dir / "orders-0").mkdir(parents=True)
    (log_dir / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    write_segment(log_dir / "orders-0", 0, batches(0, count=1))

    ran = seawall("log", "verify", "--json", log_dir)

    assert ran.status == 0
    assert json_lines(ran.stdout)[-1]["totals"]["verified"] == 2


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (None, b"", "does not exist"),
        ("notes.txt", b"hello", "is not a file, partition directory or log dir of Kafka"),
    ],
)
def test_a_path_that_is_nothing_of_kafkas_is_refused(
    tmp_path: Path, name: str | None, content: bytes, says: str
) -> None:
    """The error names the path and what would be right, with its own exit code and empty stdout."""
    path = tmp_path / (name or "absent")
    if name is not None:
        path.write_bytes(content)

    for verb in ("verify", "dump"):
        ran = seawall("log", verb, path)
        assert (ran.status, ran.stdout) == (21, "")
        assert str(path) in ran.stderr
        assert says in ran.stderr


def test_records_are_looked_at_only_when_asked(partition: Path) -> None:
    """A header that lies under a right CRC passes by batches and fails by records."""
    lie = encode_batch(plain_records(18, 3), max_timestamp_ms=T0_MS + 10**9)
    write_segment(partition, 18, [lie])

    shallow = seawall("log", "verify", partition)
    deep = seawall("log", "verify", "--records", partition)

    assert (shallow.status, deep.status) == (0, 1)
    assert "max_timestamp" in deep.stdout


def test_dump_prints_batches_records_and_values(tmp_path: Path) -> None:
    """Lines for people: ranges, epochs, times and the CRC's verdict; contents only when asked."""
    record = PlainRecord(offset=5, timestamp_ms=T0_MS, key=b"k", value=b"\xff\x00", headers=[("h", b"v")])
    path = write_segment(tmp_path, 5, [encode_batch([record], codec="zstd", leader_epoch=3)])

    plain = seawall("log", "dump", path)
    full = seawall("log", "dump", "--values", path)

    assert (plain.status, full.status) == (0, 0)
    assert plain.stdout.startswith("[5, 6)  1 records  epoch 3  2023-11-14T22:13:20.000Z  zstd")
    assert plain.stdout.rstrip().endswith("ok")
    assert "key 1 bytes 'k'  value 2 bytes 'ff00'" in full.stdout
    assert '"name": "h"' in full.stdout


def test_dump_gives_json_lines(tmp_path: Path) -> None:
    """Each batch is one object with its records inside; bytes that are no text come as hex."""
    path = write_segment(
        tmp_path,
        0,
        [
            encode_batch([PlainRecord(offset=0, timestamp_ms=T0_MS, key=None, value=b"\xff")]),
            encode_control_batch(1, commit=False, producer_id=9, timestamp_ms=T0_MS, coordinator_epoch=4),
        ],
    )

    ran = seawall("log", "dump", "--values", "--json", path)

    first, second = json_lines(ran.stdout)
    assert first["records"] == [
        {
            "offset": 0,
            "timestamp_ms": T0_MS,
            "key_bytes": None,
            "value_bytes": 1,
            "key": None,
            "value_hex": "ff",
            "headers": [],
        }
    ]
    assert (second["control"], second["producer_id"]) == (True, 9)
    assert second["records"][0]["control"] == {"type": "abort", "coordinator_epoch": 4}


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_dump_prints_many_batches_as_it_prints_one(tmp_path: Path, codec: str) -> None:
    """A window of many batches is read side by side; each line is the one that its batch alone would give."""
    odd = [
        encode_batch(
            [
                PlainRecord(offset=0, timestamp_ms=-1, key=None, value=None),
                PlainRecord(offset=1, timestamp_ms=T0_MS, key=b"", value=b"v" * 200, headers=[("h", None)]),
                PlainRecord(offset=2, timestamp_ms=300_000_000_000_000, value=b"far beyond the calendar"),
            ],
            codec=codec,
        ),
        encode_control_batch(3, commit=True, producer_id=9, timestamp_ms=T0_MS),
    ]
    content = [*odd, *batches(4, count=80, records_each=4, codec=codec)]
    broken = bytearray(content[9])
    broken[65] ^= 4
    content[9] = bytes(broken)
    alone = tmp_path / "alone"
    alone.mkdir()

    together = seawall("log", "dump", "--records", write_segment(tmp_path, 0, content))
    lines = []
    for position, batch in zip(accumulate(map(len, content), initial=0), content, strict=False):
        ran = seawall("log", "dump", "--records", write_segment(alone, 0, [batch]))
        lines += ran.stdout.replace(" at 0  crc", f" at {position}  crc").splitlines()

    assert together.status == 0
    assert together.stdout.splitlines() == lines
    assert len(lines) == len(content) + 3 + 1 + 4 * 79


def test_dump_starts_and_stops_where_it_is_told(tmp_path: Path) -> None:
    """--from takes the batch that holds the offset, --limit counts batches."""
    path = write_segment(tmp_path, 0, batches(0, count=10))

    ran = seawall("log", "dump", "--json", "--from", 7, "--limit", 2, path)

    assert [row["base_offset"] for row in json_lines(ran.stdout)] == [6, 9]


def test_dump_of_a_broken_file_prints_what_stands_before_the_break(tmp_path: Path) -> None:
    """Whole batches first, then the error with the file and the byte, exit 20."""
    content = batches(0, count=2)
    path = write_segment(tmp_path, 0, [*content, b"\0" * 30])

    ran = seawall("log", "dump", path)

    assert ran.status == 20
    assert len(ran.stdout.splitlines()) == 2
    assert f"byte {sum(map(len, content))}" in ran.stderr
    assert str(path) in ran.stderr


def test_dump_marks_a_wrong_crc_and_does_not_read_its_records(tmp_path: Path) -> None:
    """A batch that fails its CRC is shown as such; the batches after it are still printed."""
    content = batches(0, count=2)
    broken = bytearray(content[0])
    broken[65] ^= 4
    path = write_segment(tmp_path, 0, [bytes(broken), content[1]])

    ran = seawall("log", "dump", "--records", "--json", path)

    rows = json_lines(ran.stdout)
    assert [row["crc_ok"] for row in rows] == [False, True]
    assert ["records" in row for row in rows] == [False, True]


@pytest.mark.parametrize(
    ("name", "content", "rows"),
    [
        (f"{100:020d}.index", struct.pack(">ii", 5, 4096), [{"offset": 105, "position": 4096}]),
        (f"{100:020d}.timeindex", struct.pack(">qi", T0_MS, 7), [{"timestamp_ms": T0_MS, "offset": 107}]),
        (
            f"{100:020d}.txnindex",
            struct.pack(">hqqqq", 0, 9, 100, 104, 105),
            [{"producer_id": 9, "first_offset": 100, "last_offset": 104, "last_stable_offset": 105}],
        ),
        (
            "leader-epoch-checkpoint",
            b"0\n2\n0 0\n3 70\n",
            [{"epoch": 0, "start_offset": 0}, {"epoch": 3, "start_offset": 70}],
        ),
        (
            "log-start-offset-checkpoint",
            b"0\n1\norders 2 9\n",
            [{"topic": "orders", "partition": 2, "offset": 9}],
        ),
        (
            "partition.metadata",
            b"version: 0\ntopic_id: CgkTzsXgRlOwPTRJHnL2yg\n",
            [{"topic_id": "CgkTzsXgRlOwPTRJHnL2yg"}],
        ),
    ],
)
def test_every_other_file_is_dumped_entry_by_entry(
    tmp_path: Path, name: str, content: bytes, rows: Sequence[dict[str, Any]]
) -> None:
    """Indexes, checkpoints and identity come as one object an entry."""
    path = tmp_path / name
    path.write_bytes(content)

    ran = seawall("log", "dump", "--json", path)

    assert (ran.status, json_lines(ran.stdout)) == (0, rows)


def test_help_names_the_exit_codes() -> None:
    """--help of verify says what a script needs to know."""
    ran = seawall("log", "verify", "--help")

    assert ran.status == 0
    assert "Exit code 0" in ran.stdout
