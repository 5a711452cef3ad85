"""What comes back from the tier is what the log holds: each offset once, nothing that was aborted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import get_ident

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seawall.local.waiting import wait_until
from tests.encode.record_batch import CODECS, PlainRecord, encode_batch
from tests.tiering.reader.tier import T0_MS, Batch, LogOfBatches, Tier
from tests.tiering.segments.strategies import LOG, gap
from tiering.log.batch import Record, read_header
from tiering.reader.errors import GapInRange, RangeNotInTier, SegmentGone
from tiering.reader.interface import Gap, Isolation, ReaderLimits, tiered_log
from tiering.reader.opened import Aborted
from tiering.reader.reader import TieredReader
from tiering.segments.records import SegmentId, SegmentRecord, SegmentState

pytestmark = pytest.mark.slow

COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
SMALL = ReaderLimits(chunk_bytes=150, ahead_chunks=3, fetchers=2)


def as_read(records: Sequence[PlainRecord]) -> list[Record]:
    return [Record(r.offset, r.timestamp_ms, r.key, r.value, tuple(r.headers)) for r in records]


def plain(count: int, *, text: str = "v", at_ms: int = T0_MS) -> list[PlainRecord]:
    return [
        PlainRecord(offset=0, timestamp_ms=at_ms + n, key=b"k", value=text.encode()) for n in range(count)
    ]


def marker_of(batch: Batch) -> PlainRecord:
    return PlainRecord(offset=batch.start, timestamp_ms=batch.max_timestamp_ms)


RECORDS = st.lists(
    st.builds(
        PlainRecord,
        offset=st.just(0),
        timestamp_ms=st.integers(T0_MS - 50, T0_MS + 50),
        key=st.none() | st.binary(max_size=5),
        value=st.none() | st.binary(max_size=60),
        headers=st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2),
    ),
    min_size=1,
    max_size=4,
)


@st.composite
def logs(draw: st.DrawFn) -> LogOfBatches:
    """Batches of any codec, some in transactions that interleave, some under a later leader."""
    log = LogOfBatches()
    for _ in range(draw(st.integers(1, 14))):
        match draw(st.integers(0, 7)):
            case 0 | 1 | 2:
                log.append(draw(RECORDS), codec=draw(st.sampled_from(sorted(CODECS))))
            case 3 | 4 | 5:
                codec, producer = draw(st.sampled_from(sorted(CODECS))), draw(st.integers(1, 2))
                log.append(draw(RECORDS), codec=codec, producer_id=producer)
            case 6:
                log.finish(draw(st.integers(1, 2)), commit=draw(st.booleans()))
            case _:
                log.epoch += 1
    log.finish_all()
    if not log.batches:
        log.append(draw(RECORDS))
    return log


@st.composite
def tiers(draw: st.DrawFn) -> tuple[LogOfBatches, Tier]:
    """A log all in the tier, in copies that overlap, some without an index."""
    log, tier = draw(logs()), Tier()
    count, reached = len(log.batches), 0
    tier.claim(log)
    while reached < count:
        first, last = draw(st.integers(0, reached)), draw(st.integers(reached + 1, count))
        every, with_index = draw(st.integers(1, 3)), draw(st.integers(0, 3)) > 0
        tier.copy(log, first, last, index_every=every, with_index=with_index)
        reached = last
    return log, tier


RANGES = st.tuples(st.integers(0, 60), st.integers(0, 60))
LIMITS = st.builds(
    ReaderLimits,
    chunk_bytes=st.sampled_from([64, 150, 1000, 1 << 20]),
    ahead_chunks=st.integers(0, 4),
    fetchers=st.integers(1, 3),
)
model = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@model
@given(tiers(), RANGES, st.sampled_from(Isolation), LIMITS)
def test_a_range_reads_back_as_the_log_holds_it(
    made: tuple[LogOfBatches, Tier], asked: tuple[int, int], isolation: Isolation, limits: ReaderLimits
) -> None:
    """Whatever the copies, codecs, indexes, chunks and range: the log's records, each once, in order."""
    log, tier = made
    start, end = sorted(min(offset, log.end) for offset in asked)

    with TieredReader(tier.objects, limits=limits) as reader:
        found = list(reader.records(tier.log, start, end, isolation=isolation))

    assert found == as_read(log.visible(start, end, committed=isolation is COMMITTED))


@model
@given(tiers(), RANGES, LIMITS)
def test_batches_are_the_brokers_bytes(
    made: tuple[LogOfBatches, Tier], asked: tuple[int, int], limits: ReaderLimits
) -> None:
    """Every batch that holds an offset of the range, byte for byte, clipped to the range."""
    log, tier = made
    start, end = sorted(min(offset, log.end) for offset in asked)
    wanted = [batch for batch in log.batches if start < end and batch.end > start and batch.start < end]

    with TieredReader(tier.objects, limits=limits) as reader:
        found = list(reader.batches(tier.log, start, end))

    assert [bytes(batch.content) for batch in found] == [batch.content for batch in wanted]
    assert [(each.start, each.end) for each in found] == [
        (max(batch.start, start), min(batch.end, end)) for batch in wanted
    ]


@model
@given(tiers(), st.integers(T0_MS - 60, T0_MS + 120), st.integers(0, 30), st.booleans())
def test_a_time_is_found_as_kafka_finds_it(
    made: tuple[LogOfBatches, Tier], timestamp_ms: int, start: int, with_control: bool
) -> None:
    """The first offset at that time or later, control records counted or not, however times are ordered."""
    log, tier = made
    late = [
        record.offset
        for batch in log.batches
        for record in (batch.records or ([marker_of(batch)] if with_control else []))
        if record.timestamp_ms >= timestamp_ms and record.offset >= start
    ]

    with TieredReader(tier.objects, limits=SMALL) as reader:
        found = reader.offset_at(tier.log, timestamp_ms, start=start, with_control=with_control)

    assert found == (late[0] if late else None)


def test_the_time_index_says_where_to_look_to_the_offset() -> None:
    """Each time, and one a little before it, leads to its record; little of the segment is read."""
    log, tier = LogOfBatches(), Tier()
    for n in range(100):
        log.append(plain(1, text="x" * 40, at_ms=T0_MS + 10 * n))
    tier.claim(log)
    size_bytes = tier.ref(tier.copy(log, 0, 100, index_every=3)).size_bytes

    with TieredReader(tier.objects, limits=ReaderLimits(chunk_bytes=300, ahead_chunks=0)) as reader:
        found = [reader.offset_at(tier.log, T0_MS + 10 * n) for n in range(100)]
        between = [reader.offset_at(tier.log, T0_MS + 10 * n - 9) for n in range(100)]
        before = reader.counters.bytes_read
        assert reader.offset_at(tier.log, T0_MS + 990) == 99

    assert found == between == list(range(100))
    assert reader.counters.bytes_read - before < size_bytes / 2


def test_an_abort_is_known_on_both_sides_of_a_seam() -> None:
    """Records whose abort marker stands in a later segment are hidden, those around them shown."""
    log, tier = LogOfBatches(), Tier()
    log.append(plain(2, text="aborted"), producer_id=7)
    log.append(plain(1, text="shown"))
    log.append(plain(2, text="aborted"), producer_id=7)
    log.finish(7, commit=False)
    log.append(plain(1, text="committed"), producer_id=7)
    log.finish(7, commit=True)
    tier.claim(log)
    for first, last in ((0, 1), (1, 3), (3, 6)):
        tier.copy(log, first, last)

    with TieredReader(tier.objects) as reader:
        committed = [record.value for record in reader.records(tier.log, 0, log.end)]
        every = [record.value for record in reader.records(tier.log, 0, log.end, isolation=UNCOMMITTED)]

    assert committed == [b"shown", b"committed"]
    assert every == [b"aborted", b"aborted", b"shown", b"aborted", b"aborted", b"committed"]


def test_what_a_lost_leader_wrote_is_not_read() -> None:
    """A copy that goes on where the log took another turn is read up to there, in the middle of its bytes."""
    lost, kept, tier = LogOfBatches(), LogOfBatches(), Tier()
    for log, text in ((lost, "lost"), (kept, "kept")):
        for _ in range(3):
            log.append(plain(2, text="both"))
        log.epoch = 1 if log is lost else 2
        for _ in range(4):
            log.append(plain(3, text=text))
    tier.claim(lost)
    tier.copy(lost, 0, 7)
    tier.claim(kept)
    tier.copy(kept, 3, 7)

    with TieredReader(tier.objects, limits=SMALL) as reader:
        found = list(reader.records(tier.log, 0, kept.end))
        batches = [bytes(batch.content) for batch in reader.batches(tier.log, 0, kept.end)]

    assert found == as_read(kept.visible(0, kept.end, committed=True))
    assert batches == [batch.content for batch in kept.batches]


def test_a_recorded_gap_is_an_item_or_an_error_as_the_caller_chooses() -> None:
    """Never silence: what lies before it comes first in both."""
    log, tier = LogOfBatches(), Tier()
    for _ in range(3):
        log.append(plain(10))
    tier.gaps.append(gap(10, 20))
    tier.claim(log)
    tier.copy(log, 0, 1)
    tier.copy(log, 2, 3)

    with TieredReader(tier.objects) as reader:
        items = list(reader.records_and_gaps(tier.log, 5, 30))
        batches = list(reader.batches_and_gaps(tier.log, 12, 25))
        strict = reader.records(tier.log, 9, 30)
        before = next(strict)
        with pytest.raises(GapInRange) as caught:
            next(strict)

    assert [item for item in items if isinstance(item, Gap)] == [Gap(10, 20)]
    assert [item.offset for item in items if isinstance(item, Record)] == [*range(5, 10), *range(20, 30)]
    assert batches[0] == Gap(12, 20)
    assert before.offset == 9
    assert (caught.value.start, caught.value.end, caught.value.log) == (10, 20, LOG)


@pytest.mark.parametrize(("start", "end"), [(0, 12), (4, 6), (15, 21), (30, 40)])
def test_what_the_tier_does_not_cover_is_refused_before_anything_is_read(start: int, end: int) -> None:
    """Below the log's start and beyond the frontier there is an error that says what there is."""
    log, tier = LogOfBatches(), Tier(log_start=5)
    log.append(plain(10))
    log.append(plain(10))
    tier.claim(log)
    tier.copy(log, 0, 2)

    with TieredReader(tier.objects) as reader, pytest.raises(RangeNotInTier) as caught:
        reader.records(tier.log, start, end)

    assert (caught.value.first, caught.value.last) == (5, 20)
    assert tier.store.asked["read"] == 0


def test_an_empty_range_reads_nothing() -> None:
    """Also at the ends of what there is."""
    log, tier = LogOfBatches(), Tier()
    log.append(plain(10))
    tier.claim(log)
    tier.copy(log, 0, 1)

    with TieredReader(tier.objects) as reader:
        assert list(reader.records(tier.log, 10, 10)) == []
    assert tier.store.asked["read"] == 0


def test_a_log_that_nobody_tiered_has_nothing_to_be_opened() -> None:
    """An unknown log is told apart from an empty one."""
    assert not hasattr(tiered_log(Tier().table, LOG), "coverage")


def test_a_range_in_a_large_segment_reads_what_the_index_points_at() -> None:
    """Of 400 batches in one object a few chunks are fetched, not all."""
    log, tier = LogOfBatches(), Tier()
    for _ in range(400):
        log.append(plain(2, text="x" * 100))
    tier.claim(log)
    size_bytes = tier.ref(tier.copy(log, 0, 400)).size_bytes
    limits = ReaderLimits(chunk_bytes=1000, ahead_chunks=4, fetchers=2)

    with TieredReader(tier.objects, limits=limits) as reader:
        found = [record.offset for record in reader.records(tier.log, 500, 510)]

    assert found == list(range(500, 510))
    assert reader.counters.bytes_read < 12_000 < size_bytes


def test_fetching_ahead_crosses_segments_and_is_bounded() -> None:
    """While the first record is looked at, chunks of the segments behind it were asked for, and no more."""
    log, tier = LogOfBatches(), Tier()
    for _ in range(20):
        log.append(plain(1, text="x" * 50))
    tier.claim(log)
    for place in range(20):
        tier.copy(log, place, place + 1)
    limits = ReaderLimits(chunk_bytes=10_000, ahead_chunks=3, fetchers=2)

    with TieredReader(tier.objects, limits=limits) as reader:
        records = reader.records(tier.log, 0, 20)
        next(records)
        wait_until(
            lambda: tier.store.asked["read"] > limits.ahead_chunks,
            name="the reader",
            wanted="fetching ahead",
            deadline_s=30.0,
        )
        reader.close()  # waits for what is under way

    assert tier.store.asked["read"] == 1 + limits.ahead_chunks


def test_a_segment_that_went_meanwhile_is_told() -> None:
    """Expiry between the view and the read: an error that names the segment, not bytes of a deleted copy."""
    log, tier = LogOfBatches(), Tier()
    log.append(plain(10))
    tier.claim(log)
    identity = tier.copy(log, 0, 1)
    seen = tier.log
    record = tier.topic.table.segment(LOG, identity)
    assert record is not None
    tier.topic.append(replace(record, state=SegmentState.DELETE_STARTED))

    with TieredReader(tier.objects) as reader, pytest.raises(SegmentGone) as caught:
        list(reader.records(seen, 0, 10))

    assert caught.value.segment_id == identity


def test_only_batches_of_the_transaction_itself_are_hidden() -> None:
    """Not another producer's, not what the same one wrote before, after, or outside of transactions."""
    aborted = Aborted({7: [(10, 20), (40, 50)]})

    def hidden(offset: int, *, producer_id: int = 7, attributes: int = 0x10) -> bool:
        record = PlainRecord(offset=offset, timestamp_ms=T0_MS)
        return aborted.hides(
            read_header(encode_batch([record], producer_id=producer_id, attributes=attributes))
        )

    assert [hidden(offset) for offset in (9, 10, 20, 21, 39, 40, 50, 51)] == [
        False, True, True, False, False, True, True, False,
    ]  # fmt: skip
    assert not hidden(15, producer_id=8)
    assert not hidden(15, attributes=0)


def test_segments_are_looked_up_by_the_reading_thread_only() -> None:
    """A table keeps what it unpacked, and is not for several threads at once."""
    log, tier = LogOfBatches(), Tier()
    for _ in range(10):
        log.append(plain(1))
    tier.claim(log)
    for place in range(10):
        tier.copy(log, place, place + 1)
    view, callers = tier.log, set()

    def looked_up(identity: SegmentId) -> SegmentRecord | None:
        callers.add(get_ident())
        return view.segment(identity)

    with TieredReader(tier.objects) as reader:
        assert len(list(reader.records(replace(view, segment=looked_up), 0, 10))) == 10

    assert callers == {get_ident()}
