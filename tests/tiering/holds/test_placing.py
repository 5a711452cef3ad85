"""A hold in the log's own record: it takes what others wrote in between, and undoes none of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from rules.identity import LogId
from tests.tiering.segments.strategies import LOG, gap, log_record
from tests.tiering.segments.topic import Topic
from tiering.holds import placing
from tiering.holds.errors import HoldOvertaken
from tiering.holds.placing import ATTEMPTS_MAX, RELEASED_KEPT_MAX, Means
from tiering.segments.records import HeldVersions, Hold, LogRecord, ReleasedHold
from tiering.segments.view import LogView
from tiering.uploader.errors import NotFollowed

HOLD = Hold(
    hold_id="h",
    start_offset=0,
    end_offset=None,
    reason="why",
    placed_by="alice",
    placed_at_ms=1,
    finding_id="f",
)
RELEASED = ReleasedHold(hold_id="h", released_by="bob", reason="over", released_at_ms=2)


@dataclass
class Tier:
    """The metadata topic in memory; `meddle` runs between our look and our record."""

    topic: Topic = field(default_factory=Topic)
    meddle: Callable[[], object] = lambda: None

    def read_on(self) -> object:
        return None

    def view(self, log: LogId) -> LogView | None:
        return self.topic.table.view(log)

    def publish_log(self, record: LogRecord) -> int:
        self.meddle()
        if self.topic.append(record):
            raise NotFollowed(log=record.log, segment_id="-", state="claim", why="lost race")
        return len(self.topic.records) - 1

    @property
    def record(self) -> LogRecord:
        found = self.topic.view.record
        assert found is not None
        return found


@pytest.fixture
def tier() -> Tier:
    """A log that was claimed at epoch 3."""
    made = Tier()
    made.topic.claim(log_record(3))
    return made


def means(tier: Tier) -> Means:
    names = iter(range(10_000))
    return Means(tier=tier, now_ms=lambda: 7, new_id=lambda: f"event-{next(names)}")


def test_it_stands_in_the_record_and_nothing_else_changes(tier: Tier) -> None:
    """The same record under the same claim, with a hold; a second word changes nothing."""
    before = tier.record
    written = placing.place(LOG, HOLD, means(tier))
    again = placing.place(LOG, HOLD, means(tier))

    assert written is not None
    assert written.offset == 1
    assert again is not None
    assert (again.hold, again.offset) == (HOLD, None)
    same = ("holds", "based_on", "claim_offset", "event_id", "occurred_at_ms")
    assert tier.record.holds == (HOLD,)
    assert replace(tier.record, **{name: getattr(before, name) for name in same}) == before


def test_a_log_without_a_record_has_nothing_to_bind() -> None:
    """No record is made up for it."""
    tier = Tier()

    assert placing.place(LOG, HOLD, means(tier)) is None
    assert tier.topic.records == []


def test_what_others_write_in_between_stays(tier: Tier) -> None:
    """A new leader's claim, then a gap: ours is not followed, and is made anew from theirs."""
    others = iter(
        [
            lambda: tier.topic.claim(replace(tier.record, claim_epoch=4)),
            lambda: tier.topic.claim(replace(tier.record, gaps=(gap(10, 20),))),
        ]
    )
    tier.meddle = lambda: next(others, lambda: None)()

    written = placing.place(LOG, HOLD, means(tier))

    assert written is not None
    assert (tier.record.claim_epoch, tier.record.holds) == (4, (HOLD,))
    assert [each.start_offset for each in tier.record.gaps] == [10]


def test_others_who_never_pause_are_an_error(tier: Tier) -> None:
    """It is not said to stand where it does not."""
    tier.meddle = lambda: tier.topic.claim(
        replace(tier.record, occurred_at_ms=tier.record.occurred_at_ms + 1)
    )

    with pytest.raises(HoldOvertaken) as told:
        placing.place(LOG, HOLD, means(tier))

    assert told.value.attempts == ATTEMPTS_MAX
    assert tier.record.holds == ()


def test_a_release_is_remembered_and_others_stand(tier: Tier) -> None:
    """What was released is on record, so that a finding does not place it again; the last are kept."""
    placing.place(LOG, HOLD, means(tier))
    placing.place(LOG, replace(HOLD, hold_id="other"), means(tier))

    written = placing.release(LOG, RELEASED, means(tier))

    assert written is not None
    assert written.hold == HOLD
    assert [each.hold_id for each in tier.record.holds] == ["other"]
    assert placing.was_released(tier.record, "h")
    assert not placing.was_released(tier.record, "other")
    assert placing.release(LOG, RELEASED, means(tier)) is None
    for number in range(RELEASED_KEPT_MAX + 1):
        placing.place(LOG, replace(HOLD, hold_id=f"h{number}"), means(tier))
        placing.release(LOG, replace(RELEASED, hold_id=f"h{number}"), means(tier))
    assert len(tier.record.released_holds) == RELEASED_KEPT_MAX
    assert placing.was_released(tier.record, f"h{RELEASED_KEPT_MAX}")


def test_what_became_of_the_versions_is_part_of_the_hold(tier: Tier) -> None:
    """It is noted on the hold that stands, and nowhere once it was released."""
    versions = HeldVersions(start_offset=0, end_offset=10, held=3, missing=1, at_ms=5)
    placing.place(LOG, HOLD, means(tier))

    noted = placing.note_versions(LOG, "h", versions, means(tier))

    assert noted is not None
    assert tier.record.holds == (replace(HOLD, versions=versions),)
    placing.release(LOG, RELEASED, means(tier))
    assert placing.note_versions(LOG, "h", versions, means(tier)) is None


def test_a_new_leaders_claim_keeps_it(tier: Tier) -> None:
    """Whoever leads next begins with the hold."""
    placing.place(LOG, HOLD, means(tier))
    tier.topic.claim(replace(tier.record, claim_epoch=9))

    assert tier.record.holds == (HOLD,)
