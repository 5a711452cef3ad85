"""What is sent on of a batch, read back; and the map of offsets that comes of it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backup.topic.encode import renumbered
from backup.topic.groups import Mapped, Place, moves
from backup.topic.offset_map import OffsetMap, Run, joined
from backup.topic.outgoing import SEQUENCES, Outgoing, Packer, Sender, outgoing
from backup.topic.progress import Step, decode_step, encode_step, map_of
from tests.encode.record_batch import CODECS, PlainRecord, encode_batch, encode_record, varint
from tiering.log.batch import HEADER_BYTES, LOG_APPEND_TIME, Record, crc_of, read_header, read_records
from tiering.log.errors import Malformed
from tiering.reader.interface import StoredBatch
from tiering.segments.records import SegmentId

records_lists = st.lists(
    st.builds(
        PlainRecord,
        offset=st.just(0),
        timestamp_ms=st.integers(0, 2**41),
        key=st.none() | st.binary(max_size=20),
        value=st.none() | st.binary(max_size=300),
        headers=st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=3),
    ),
    min_size=1,
    max_size=12,
)


def stored(content: bytes, start: int | None = None, end: int | None = None) -> StoredBatch:
    header = read_header(content)
    return StoredBatch(
        header=header,
        content=memoryview(content),
        start=header.base_offset if start is None else start,
        end=header.next_offset if end is None else end,
        segment_id=SegmentId("one"),
        position=0,
    )


def told(records: list[PlainRecord]) -> list[tuple[object, ...]]:
    return [(each.timestamp_ms, each.key, each.value, tuple(each.headers)) for each in records]


@pytest.mark.slow
@given(
    records=records_lists,
    codec=st.sampled_from(sorted(CODECS)),
    gaps=st.lists(st.integers(1, 3), min_size=12, max_size=12),
    has_holes=st.booleans(),
    append_time=st.booleans(),
    cut=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    is_whole=st.booleans(),
)
def test_the_records_that_were_asked_for_are_sent(
    records: list[PlainRecord],
    codec: str,
    gaps: list[int],
    has_holes: bool,
    append_time: bool,
    cut: tuple[int, int],
    is_whole: bool,
) -> None:
    """Whole or a part, with a cleaner's holes, with the broker's times: in order, numbered from 0, CRC right;
    the payload is not touched where it need not be, and the runs say where each record went."""
    offset, placed = 100, []
    for number, each in enumerate(records):
        placed.append(
            PlainRecord(
                offset=offset,
                timestamp_ms=each.timestamp_ms,
                key=each.key,
                value=each.value,
                headers=each.headers,
            )
        )
        offset += gaps[number] if has_holes else 1
    content = encode_batch(placed, codec=codec, attributes=LOG_APPEND_TIME if append_time else 0)
    last = placed[-1].offset + 1
    start, end = (100, last) if is_whole else (100 + min(cut), min(last, 100 + max(cut) + 1))
    wanted = [each for each in placed if start <= each.offset < end]
    latest = max(each.timestamp_ms for each in placed)
    sender = Sender(producer_id=7, producer_epoch=2, sequence=SEQUENCES - 1)

    found = outgoing(stored(content, start, end), sender)

    if not wanted:
        assert found is None
        return
    assert found is not None
    header = read_header(found.content)
    sent = list(read_records(found.content, header))
    assert crc_of(found.content, 0, header.size_bytes) == header.crc
    assert (header.base_offset, header.last_offset_delta) == (0, len(wanted) - 1)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, SEQUENCES - 1)
    assert (header.is_transactional, header.is_control, header.is_log_append_time) == (True, False, False)
    assert header.codec_number == CODECS[codec]
    assert header.max_timestamp_ms == max(each.timestamp_ms for each in sent)
    times = [(latest if append_time else row[0], *row[1:]) for row in told(wanted)]
    assert [each[1:] for each in sent] == times
    assert sender.sequence == len(wanted) - 1
    named = [(run.source + n, run.target + n) for run in found.runs for n in range(run.offsets)]
    assert named == [(each.offset, number) for number, each in enumerate(wanted)]
    if is_whole and not has_holes and not append_time:
        assert (found.is_passed_through, bytes(found.content[61:])) == (True, content[61:])


source_batches = st.lists(
    st.tuples(
        records_lists,
        st.sampled_from(["none", "none", "none", *sorted(CODECS)]),
        st.sampled_from(["whole", "whole", "whole", "cut", "holes", "append time"]),
        st.integers(0, 3),  # offsets that were a marker's, or an aborted batch's, before it
    ),
    min_size=1,
    max_size=10,
)


def laid_out(drawn: list[tuple[Any, ...]]) -> tuple[list[StoredBatch], list[Record]]:
    """Batches behind each other as a log has them, and the records of them that were asked for."""
    offset, batches, wanted = 50, [], []
    for records, codec, kind, skipped in drawn:
        offset += skipped
        step = 2 if kind == "holes" else 1
        placed = [replace(each, offset=offset + step * number) for number, each in enumerate(records)]
        flags = LOG_APPEND_TIME if kind == "append time" else 0
        content = encode_batch(placed, codec=codec, attributes=flags)
        start, end = offset, placed[-1].offset + 1
        if kind == "cut":
            start += len(placed) // 2
        batches.append(stored(content, start, end))
        latest_ms = max(each.timestamp_ms for each in placed)
        wanted += [
            Record(
                each.offset,
                latest_ms if flags else each.timestamp_ms,
                each.key,
                each.value,
                tuple(each.headers),
            )
            for each in placed
            if each.offset >= start
        ]
        offset = end
    return batches, wanted


def packed(batches: list[StoredBatch], limit_bytes: int, sequence: int = 0) -> list[Outgoing]:
    packer = Packer(
        sender=Sender(producer_id=7, producer_epoch=2, sequence=sequence), limit_bytes=limit_bytes
    )
    found = [made for batch in batches for made in packer.add(batch)]
    assert packer.bytes <= max(limit_bytes, *(batch.header.size_bytes for batch in batches))
    found += packer.flush()
    assert (packer.flush(), packer.bytes) == ([], 0)
    return found


@pytest.mark.slow
@given(drawn=source_batches, limit_bytes=st.integers(61, 4000))
def test_batches_behind_each_other_are_the_same_records(
    drawn: list[tuple[Any, ...]], limit_bytes: int
) -> None:
    """Any mix of codecs, cuts, holes and broker's times: what is sent reads as the records asked for, in
    order; each batch has true headers and sequences; the runs say where each went; none is made larger
    than the limit by packing."""
    batches, wanted = laid_out(drawn)

    found = packed(batches, limit_bytes, SEQUENCES - 3)

    at, sequence, pairs = 0, SEQUENCES - 3, []
    for made in found:
        header = read_header(made.content)
        sent = list(read_records(made.content, header))
        assert crc_of(made.content, 0, header.size_bytes) == header.crc
        assert (header.size_bytes, len(sent)) == (len(made.content), made.records)
        assert [each.offset for each in sent] == list(range(made.records))
        assert (header.record_count, header.last_offset_delta) == (made.records, made.records - 1)
        assert [each[1:] for each in sent] == [each[1:] for each in wanted[at : at + made.records]]
        assert header.base_timestamp_ms == sent[0].timestamp_ms
        assert header.max_timestamp_ms == max(each.timestamp_ms for each in sent)
        assert header.base_sequence == sequence
        sequence = (sequence + made.records) % SEQUENCES
        pairs += [(run.source + n, at + run.target + n) for run in made.runs for n in range(run.offsets)]
        sources = [each for each in batches if any(each.start <= run.source < each.end for run in made.runs)]
        assert made.next_offset == sources[-1].end
        if len(sources) > 1:
            assert len(made.content) <= limit_bytes
            assert {each.header.codec_number for each in sources} == {0}
            assert made.is_passed_through
        at += made.records
    assert at == len(wanted)
    assert pairs == [(each.offset, number) for number, each in enumerate(wanted)]


def test_small_batches_share_a_request_up_to_the_limit() -> None:
    """As many as fit, no more; a compressed one goes alone, behind what was before it."""
    small = [
        encode_batch([PlainRecord(offset=10 * n, timestamp_ms=1000 - n, value=b"%03d" % n)]) for n in range(9)
    ]
    size_bytes = len(small[0])
    assert {len(each) for each in small} == {size_bytes}
    plain = [stored(each) for each in small]
    between = stored(encode_batch([PlainRecord(offset=5000, timestamp_ms=1, value=b"z")], codec="zstd"))

    limit_bytes = size_bytes + 2 * (size_bytes - HEADER_BYTES + 2)  # a time takes a byte more, at most

    assert [made.records for made in packed(plain, limit_bytes)] == [3, 3, 3]
    assert [made.records for made in packed(plain, limit_bytes - 1)] == [2, 2, 2, 2, 1]
    assert [made.records for made in packed(plain, 1)] == [1] * 9
    mixed = packed([*plain[:2], between, *plain[2:4]], 10_000)
    assert [(made.records, made.runs[0].source) for made in mixed] == [(2, 0), (1, 5000), (2, 20)]
    assert [made.runs for made in mixed[::2]] == [
        (Run(0, 0, 1), Run(10, 1, 1)),
        (Run(20, 0, 1), Run(30, 1, 1)),
    ]


@pytest.mark.slow
@given(records=records_lists, data=st.data())
def test_a_broken_payload_is_malformed(records: list[PlainRecord], data: st.DataObject) -> None:
    """Cut short, longer than its records, or with a length that leaves it: refused, never sent; whatever
    bytes it is, nothing else is raised."""
    base_ms = records[0].timestamp_ms
    whole = b"".join(encode_record(replace(each, offset=n), 0, base_ms) for n, each in enumerate(records))
    assert b"".join(renumbered(whole, len(records), 0, 0)) == whole

    cut = data.draw(st.integers(0, len(whole) - 1), label="cut at")
    for broken in (whole[:cut], whole + b"\0", varint(len(whole) * 2) + whole[1:], b"\x01" + whole[1:]):
        with pytest.raises(Malformed):
            renumbered(broken, len(records), 3, 5)
    with pytest.raises(Malformed):
        renumbered(whole, len(records) + 1, 3, 5)
    with contextlib.suppress(Malformed):
        renumbered(data.draw(st.binary(max_size=80), label="any bytes"), len(records), 3, 5)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9), st.integers(0, 4)), max_size=12))
def test_the_map_leads_each_position_to_the_next_record(shape: list[tuple[int, int, int]]) -> None:
    """Held against the plain list of records: those at runs, between them, before and behind."""
    runs, source, target = [], 50, 3
    for skipped, offsets, markers in shape:
        source, target = source + skipped, target + markers
        runs.append(Run(source, target, offsets))
        source, target = source + offsets, target + offsets
    pairs = [(run.source + n, run.target + n) for run in runs for n in range(run.offsets)]
    found = OffsetMap(start=50, end=source + 2, target_end=target, runs=joined(runs))
    for position in range(45, source + 6):
        following = [to for at, to in pairs if at >= position]
        wanted = following[0] if following else target
        assert found.translate(position) == (wanted if position <= source + 2 else None)
    steps = [Step(next_offset=50, target_end=-1, runs=())]
    steps += [Step(next_offset=run.source_end, target_end=run.target_end, runs=(run,)) for run in runs]
    assert [decode_step(encode_step(each)) for each in steps] == steps
    assert map_of(steps, 50).runs == found.runs


def test_a_group_is_told_what_has_no_answer() -> None:
    """Within: moved. Beyond: left, and told. Below: the first record that there is, and told."""
    found = OffsetMap(start=10, end=20, target_end=9, runs=(Run(10, 0, 9),))
    mapped = [Mapped(source=Place("a", n), target=Place("b", n), map=found) for n in range(4)]
    committed = {Place("a", 0): 12, Place("a", 1): 21, Place("a", 2): 4, Place("other", 3): 1}
    said = moves(committed, mapped)
    assert [(each.position, bool(each.why)) for each in said] == [(2, False), (None, True), (0, True)]


def test_a_record_reads_as_one() -> None:
    """The reader's own type, so that a test cannot pass by comparing nothing."""
    content = encode_batch([PlainRecord(offset=5, timestamp_ms=9, key=b"k", value=b"v")])
    assert list(stored(content).records()) == [Record(5, 9, b"k", b"v", ())]
