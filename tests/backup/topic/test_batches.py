"""What is sent on of a batch, read back; and the map of offsets that comes of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from backup.topic.groups import Mapped, Place, moves
from backup.topic.offset_map import OffsetMap, Run, joined
from backup.topic.outgoing import SEQUENCES, Sender, outgoing
from backup.topic.progress import Step, decode_step, encode_step, map_of
from tests.encode.record_batch import CODECS, PlainRecord, encode_batch
from tiering.log.batch import LOG_APPEND_TIME, Record, crc_of, read_header, read_records
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
