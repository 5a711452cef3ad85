"""Batches taken together are the batches taken one by one, however the runs are cut."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.tiering.reader.test_reader import LIMITS, RANGES, model, plain, tiers
from tests.tiering.reader.tier import LogOfBatches, Tier
from tiering.reader.interface import Gap, ReaderLimits, StoredBatch, StoredRun
from tiering.reader.reader import TieredReader

pytestmark = pytest.mark.slow

Facts = tuple[bytes, int, int, int, str]


def runs_of(tier: Tier, start: int, end: int, limits: ReaderLimits | None = None) -> list[StoredRun]:
    """Their bytes stay valid: they are of immutable chunks."""
    with TieredReader(tier.objects, limits=limits) as reader:
        items = list(reader.runs(tier.log, start, end, with_aborted=False))
    assert not any(isinstance(item, Gap) for item in items)
    return [item[1] for item in items if not isinstance(item, Gap)]


def facts(batch: StoredBatch) -> Facts:
    return bytes(batch.content), batch.start, batch.end, batch.position, str(batch.segment_id)


@model
@given(tiers(), RANGES, LIMITS)
def test_a_run_cut_anywhere_holds_the_same_batches(
    made: tuple[LogOfBatches, Tier], asked: tuple[int, int], limits: ReaderLimits
) -> None:
    """Each half's bytes, bounds, bases, clips and positions are those of its batches."""
    log, tier = made
    start, end = sorted(min(offset, log.end) for offset in asked)
    with TieredReader(tier.objects, limits=limits) as reader:
        wanted = [facts(batch) for batch in reader.batches(tier.log, start, end)]

    halves: list[StoredRun] = []
    for number, run in enumerate(runs_of(tier, start, end, limits)):
        halves += run.split(1 + number % (len(run) - 1)) if len(run) > 1 else (run,)

    assert [facts(batch) for half in halves for batch in half.batches()] == wanted
    for half in halves:
        batches = list(half.batches())
        assert half.size_bytes == sum(len(batch.content) for batch in batches)
        assert list(half.bases) == [batch.header.base_offset for batch in batches]
        assert half.next_offset == batches[-1].header.next_offset
        assert (half.start, half.end) == (batches[0].start, batches[-1].end)


def test_what_lies_in_one_chunk_comes_together() -> None:
    """A chunk's first batch, which brings it, and all others as one: the walk is not batch by batch."""
    log, tier = LogOfBatches(), Tier()
    for _ in range(50):
        log.append(plain(3))
    tier.claim(log)
    tier.copy(log, 0, 50)

    assert [len(run) for run in runs_of(tier, 0, log.end)] == [1, 49]
