"""`seawall read`: what a user sees of the tier, and the exit code that a script acts on."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seawall.cli.read import source
from seawall.cli.read.bounds import AtOffset, AtTime, parse_bound
from tests.encode.record_batch import PlainRecord
from tests.seawall.cli.calling import Called, call
from tests.tiering.reader.tier import T0_MS, LogOfBatches, Tier
from tests.tiering.segments.strategies import LOG, OTHER_LOG, gap, log_record
from tiering.segments.records import LogId

T0 = "2023-11-14T22:13:20.000Z"


@pytest.fixture
def tier(monkeypatch: pytest.MonkeyPatch) -> Tier:
    """An empty tier, which the verb opens in place of the one that settings name."""
    made = Tier()
    monkeypatch.setattr(
        source, "open_tier", lambda _settings, _progress: source.Tier(table=made.table, objects=made.objects)
    )
    return made


@pytest.fixture
def log(tier: Tier) -> LogOfBatches:
    """Topic orders, partition 3: ten records, one a second, in two segments; the fourth batch aborted."""
    made = LogOfBatches()
    for n in range(2):
        made.append([_record(2 * n, value=f"v{2 * n}".encode()), _record(2 * n + 1)], codec="zstd")
    made.append([_record(4, value=b"aborted")], producer_id=7)
    made.append([_record(5, key=None, value=b"\xff\x00", headers=(("h", b"1"), ("n", None)))])
    made.finish(7, commit=False)
    made.append([_record(7, key=b"tab\tline\n", value=b"back\\slash")])
    tier.claim(made)
    tier.copy(made, 0, 3)
    tier.copy(made, 2, len(made.batches))
    return made


def _record(
    second: int,
    *,
    key: bytes | None = b"k",
    value: bytes | None = None,
    headers: tuple[tuple[str, bytes | None], ...] = (),
) -> PlainRecord:
    return PlainRecord(offset=0, timestamp_ms=T0_MS + 1000 * second, key=key, value=value, headers=headers)


def seawall_read(*arguments: object) -> Called:
    return call("read", *map(str, arguments))


def _rows(ran: Called) -> list[dict[str, object]]:
    return [json.loads(line) for line in ran.stdout.splitlines()]


def _offsets(ran: Called) -> list[object]:
    return [row["offset"] for row in _rows(ran)]


def test_text_is_one_line_a_record(log: LogOfBatches) -> None:
    """Tabs between; nulls, control characters and what is not UTF-8 cannot be taken for anything else."""
    ran = seawall_read("orders:3")

    assert (ran.status, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        f"3\t0\t{T0}\tk\tv0",
        "3\t1\t2023-11-14T22:13:21.000Z\tk\t\\N",
        "3\t2\t2023-11-14T22:13:22.000Z\tk\tv2",
        "3\t3\t2023-11-14T22:13:23.000Z\tk\t\\N",
        "3\t5\t2023-11-14T22:13:25.000Z\t\\N\t\\xff\\x00\th=1\tn=\\N",
        "3\t7\t2023-11-14T22:13:27.000Z\ttab\\tline\\n\tback\\\\slash",
    ]


def test_json_keeps_every_byte(log: LogOfBatches) -> None:
    """Text where it is UTF-8, base64 under another name where it is not."""
    ran = seawall_read("orders:3", "--json", "--from", 5)

    assert ran.status == 0
    assert _rows(ran)[0] == {
        "topic": "orders",
        "partition": 3,
        "offset": 5,
        "timestamp_ms": T0_MS + 5000,
        "key": None,
        "value_base64": base64.b64encode(b"\xff\x00").decode(),
        "headers": [{"name": "h", "value": "1"}, {"name": "n", "value": None}],
    }


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        ((), [0, 1, 2, 3, 5, 7]),
        (("--isolation", "read_uncommitted"), [0, 1, 2, 3, 4, 5, 7]),
        (("--from", "3", "--to", "6"), [3, 5]),
        (("--from", "2023-11-14T22:13:22Z", "--to", "2023-11-14T22:13:25Z"), [2, 3]),
        (("--from", "2023-11-14T22:13:22"), [2, 3, 5, 7]),
        (("--to", f"@{T0_MS + 1500}"), [0, 1]),
        (("--max-records", "2"), [0, 1]),
        (("--from", "3", "--to", "3"), []),
    ],
)
def test_ranges_by_offset_and_by_time(
    log: LogOfBatches, options: tuple[str, ...], offsets: list[int]
) -> None:
    """From the first, before the last; times stand for the first record of that time or later."""
    ran = seawall_read("orders:3", "--json", *options)

    assert (ran.status, ran.stderr) == (0, "")
    assert _offsets(ran) == offsets


def test_times_out_of_order_leave_a_range_as_it_is_meant(tier: Tier) -> None:
    """A record of the far future at the beginning, and markers of another day, do not empty a later range."""
    log = LogOfBatches()
    log.append([_record(10**6)], producer_id=7)
    log.finish(7, commit=True)
    for n in range(5):
        log.append([_record(-(10**6) + n)], producer_id=7)
        log.finish(7, commit=True)  # whose marker is of about T0
    tier.claim(log)
    tier.copy(log, 0, len(log.batches))

    start = f"@{T0_MS - 10**9 + 1000}"
    ran = seawall_read("orders:3", "--json", "--from", 2, "--to", f"@{T0_MS - 10**9 + 3000}")
    both = seawall_read("orders:3", "--json", "--from", start, "--to", f"@{T0_MS - 10**9 + 3000}")

    assert (ran.status, _offsets(ran)) == (0, [2, 4, 6])
    assert (both.status, _offsets(both)) == (0, [])
    assert "nothing lies between: the first record of" in both.stderr
    assert "at offset 0," in both.stderr  # the far one


def test_parquet_is_typed_and_complete(log: LogOfBatches, tmp_path: Path) -> None:
    """pyarrow reads the columns back as they were meant; no other file is left beside."""
    path = tmp_path / "orders.parquet"

    ran = seawall_read("orders", "--parquet", path)

    assert (ran.status, ran.stdout) == (0, "")
    table = pq.read_table(path)
    assert table.schema.field("timestamp").type == pa.timestamp("ms", tz="UTC")
    assert table.schema.field("offset").type == pa.int64()
    assert table["offset"].to_pylist() == [0, 1, 2, 3, 5, 7]
    assert table["timestamp"].to_pylist()[0] == datetime(2023, 11, 14, 22, 13, 20, tzinfo=timezone.utc)
    assert table["value"].to_pylist() == [b"v0", None, b"v2", None, b"\xff\x00", b"back\\slash"]
    assert table["headers"].to_pylist()[4] == [{"name": "h", "value": b"1"}, {"name": "n", "value": None}]
    assert list(tmp_path.iterdir()) == [path]


def test_raw_is_the_brokers_bytes_and_log_dump_reads_them(log: LogOfBatches, tmp_path: Path) -> None:
    """Every batch of the range, aborted and control ones too."""
    path = tmp_path / f"{0:020d}.log"

    ran = seawall_read("orders:3", "--raw", path)
    dumped = call("log", "dump", "--json", str(path))

    assert ran.status == 0
    assert path.read_bytes() == b"".join(batch.content for batch in log.batches)
    assert [json.loads(line)["base_offset"] for line in dumped.stdout.splitlines()] == [0, 2, 4, 5, 6, 7]
    assert call("log", "verify", str(path)).status == 0


def test_what_is_not_in_the_tier_is_told_and_exits_3(tier: Tier) -> None:
    """What is there is printed; below, beyond, and times that nothing reaches are on standard error."""
    tier.log_start = 2
    log = LogOfBatches()
    log.append([_record(n) for n in range(4)])
    tier.claim(log)
    tier.copy(log, 0, 1)

    ran = seawall_read("orders:3", "--json", "--from", 0, "--to", 9)
    late = seawall_read("orders:3", "--json", "--to", "2030-01-01")

    assert (ran.status, _offsets(ran)) == (3, [2, 3])
    assert "orders-3: [0, 2) is not in the tier, which begins at 2" in ran.stderr
    assert "orders-3: [4, 9) is not in the tier, which ends at 4" in ran.stderr
    assert (late.status, _offsets(late)) == (3, [2, 3])
    assert "no record of 2030-01-01T00:00:00.000Z or later" in late.stderr


def test_a_recorded_gap_is_told_or_fails(tier: Tier, tmp_path: Path) -> None:
    """Exit 3 with what is there; 35 with --gaps fail, and then no file."""
    log = LogOfBatches()
    for n in range(3):
        log.append([_record(n), _record(n)])
    tier.gaps.append(gap(2, 4))
    tier.claim(log)
    tier.copy(log, 0, 1)
    tier.copy(log, 2, 3)

    told = seawall_read("orders:3", "--json")
    failed = seawall_read("orders:3", "--parquet", tmp_path / "out", "--gaps", "fail")

    assert (told.status, _offsets(told)) == (3, [0, 1, 4, 5])
    assert "orders-3: [2, 4) is lost" in told.stderr
    assert failed.status == 35
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("harm", "status", "says"),
    [
        (lambda content: content[:70] + bytes([content[70] ^ 1]) + content[71:], 34, "damaged at byte 0 of"),
        (lambda content: content[:-10], 34, "the store has"),
        (None, 36, "is not there"),
    ],
)
def test_damage_and_absence_have_codes_of_their_own(
    tier: Tier,
    log: LogOfBatches,
    tmp_path: Path,
    harm: Callable[[bytes], bytes] | None,
    status: int,
    says: str,
) -> None:
    """Log, segment, object and place are named, and no file is left."""
    ref = tier.ref(next(tier.topic.view.segments()).segment_id)
    if harm is None:
        tier.store.kept.objects[ref.key].clear()
    else:
        tier.tamper(ref, harm(tier.content(ref)))

    ran = seawall_read("orders:3", "--raw", tmp_path / "out")

    assert ran.status == status
    for part in (says, ref.key, str(ref.version_id), f"{LOG.topic_id}:3"):
        assert part in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_names_that_mean_nothing_are_refused(log: LogOfBatches) -> None:
    """46, and the nearest name or what there is."""
    assert seawall_read("orders:3").status == 0
    unknown, partition = seawall_read("order"), seawall_read("orders:4")
    other_id = seawall_read("orders", "--topic-id", OTHER_LOG.topic_id)

    assert [ran.status for ran in (unknown, partition, other_id)] == [46, 46, 46]
    assert "did you mean orders?" in unknown.stderr
    assert "partition 4 of orders" in partition.stderr
    assert "it has 3" in partition.stderr
    assert LOG.topic_id in other_id.stderr


def test_a_topic_made_again_is_asked_about_or_told(tier: Tier, log: LogOfBatches) -> None:
    """Two that live are ambiguous; a deleted one gives way, and is named; either can be chosen."""
    again = log_record(0, log=LogId(LOG.cluster_id, OTHER_LOG.topic_id, 3))
    tier.topic.append(again)

    ambiguous = seawall_read("orders:3")
    chosen = seawall_read("orders:3", "--json", "--topic-id", LOG.topic_id)
    first = tier.topic.view
    assert first.record is not None
    tier.topic.claim(replace(first.record, topic_deleted_at_ms=T0_MS))
    told = seawall_read("orders:3")

    assert ambiguous.status == 46
    assert LOG.topic_id in ambiguous.stderr
    assert OTHER_LOG.topic_id in ambiguous.stderr
    assert (chosen.status, len(_rows(chosen))) == (0, 6)
    assert (told.status, told.stdout) == (4, "")  # of the new one nothing is copied yet
    assert f"orders is {OTHER_LOG.topic_id} now; not read: {LOG.topic_id}" in told.stderr


def test_nothing_in_the_tier_is_no_pass(tier: Tier) -> None:
    """A log that is claimed and of which no segment is copied yet: exit 4, and it says so."""
    log = LogOfBatches()
    tier.claim(log)

    ran = seawall_read("orders")

    assert (ran.status, ran.stdout) == (4, "")
    assert "orders-3: nothing of it is in the tier yet" in ran.stderr


def test_a_cache_serves_the_second_run(tier: Tier, log: LogOfBatches, tmp_path: Path) -> None:
    """Nothing is asked of the store again."""
    first = seawall_read("orders:3", "--cache", tmp_path)
    asked = tier.store.asked["read"]

    second = seawall_read("orders:3", "--cache", tmp_path)

    assert second == first
    assert tier.store.asked["read"] == asked > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("orders:x",),
        (":3",),
        ("orders", "--from", "yesterday"),
        ("orders", "--json", "--raw", "x"),
        ("orders", "--raw", "x"),
        ("orders", "--from", "5", "--to", "2"),
        ("orders:3", "--raw", "x", "--max-records", "3"),
        ("orders", "--isolation", "serializable"),
    ],
)
def test_what_cannot_be_meant_is_usage(tier: Tier, arguments: tuple[str, ...]) -> None:
    """Exit 2, before anything is opened."""
    ran = seawall_read(*arguments)

    assert (ran.status, ran.stdout) == (2, "")


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("0", AtOffset(0)),
        ("1700000000000", AtOffset(1_700_000_000_000)),
        ("@1700000000000", AtTime(1_700_000_000_000)),
        ("2023-11-14T22:13:20Z", AtTime(1_700_000_000_000)),
        ("2023-11-14T23:13:20.005+01:00", AtTime(1_700_000_000_005)),
        ("2023-11-14", AtTime(1_699_920_000_000)),
        ("1969-12-31T23:59:59.999Z", AtTime(-1)),
    ],
)
def test_bounds_are_offsets_or_times(text: str, bound: AtOffset | AtTime) -> None:
    """A bare number is always an offset."""
    assert parse_bound(text) == bound
