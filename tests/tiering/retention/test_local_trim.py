"""How a trim is carried out: evidence before and after, each request once, each answer read back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rules.events import LogEvent, TrimCertified, TrimResult
from tests.tiering.retention.trim_world import LOG, PARTITION, TrimWorld
from tests.tiering.retention.world import EPOCH
from tiering.retention.local_trim import Answer, Answered, settle
from tiering.retention.reasons import Keep, Reason


@pytest.fixture
def world() -> TrimWorld:
    """Three expired segments, all in the tier."""
    made = TrimWorld()
    made.fill(0, 100, 200)
    return made


def test_certificate_request_outcome(world: TrimWorld) -> None:
    """The certificate has all that a judge needs, and names the same trim as the outcome does."""
    run = world.trim()

    assert world.asked == [300]
    assert run.result is TrimResult.ADVANCED
    assert [event.kind for event in world.events] == ["trim_certified", "trim_outcome"]
    [certificate], [outcome] = world.certificates(), world.outcomes()
    assert (certificate.old_start, certificate.new_start, certificate.frontier) == (0, 300, 300)
    assert certificate.leader_epoch == EPOCH
    assert certificate.segments == tuple(
        (record.segment_id, record.objects.log.checksum) for record in world.records if record.objects.log
    )
    assert certificate.agreeing_brokers == (1, 2, 3)
    assert (outcome.certificate_id, outcome.start_read_back) == (certificate.certificate_id, 300)
    assert certificate.event_id != outcome.event_id


def test_nothing_of_the_tier_is_touched(world: TrimWorld) -> None:
    """A trim reads the bucket and the topic, and changes neither."""
    before = len(world.tier.topic_records)

    world.trim()

    assert len(world.tier.topic_records) == before
    assert world.tier.marked() == set()


def test_no_request_without_a_durable_certificate(world: TrimWorld) -> None:
    """A sink that is full or broken ends the turn before anything is asked of the broker."""

    def fails(event: LogEvent) -> None:
        raise OSError("the spool is full")

    world.emitted = fails

    with pytest.raises(OSError, match="full"):
        world.trim()
    assert world.asked == []


def test_the_certificate_is_there_before_the_request(world: TrimWorld) -> None:
    """When the broker is asked, the sink has returned for the certificate, and for nothing else."""
    seen: list[int] = []

    def emitted(event: LogEvent) -> None:
        if isinstance(event, TrimCertified):
            seen.append(len(world.asked))

    world.emitted = emitted
    world.trim()

    assert seen == [0]


@pytest.mark.parametrize("kind", ["log", "aux"])
def test_what_the_store_does_not_show_is_not_trimmed(world: TrimWorld, kind: str) -> None:
    """A record is a claim; the object must be there, at its version, with its size and checksum."""
    world.lost.add(f"{world.records[1].key_stem}.{kind}")

    run = world.trim()

    assert isinstance(run.stopped, Keep)
    assert run.stopped.reason is Reason.OBJECT_UNCONFIRMED
    assert (world.asked, world.events) == ([], [])


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (lambda world: world.tier.hold(0, 10), Reason.HELD),
        (lambda world: world.tier.claim(EPOCH + 1), Reason.NOT_LEADING),
        (lambda world: world.tier.change(), Reason.CHANGED_MEANWHILE),
        (lambda world: setattr(world, "lag", 1), Reason.TABLE_DOUBTED),
    ],
)
def test_a_second_look_must_say_the_same(
    world: TrimWorld, happens: Callable[[TrimWorld], None], reason: Reason
) -> None:
    """Whatever came while the store was asked counts: a hold, a leader, or just another record."""
    world.at_look[1] = lambda: happens(world)

    run = world.trim()

    assert isinstance(run.stopped, Keep)
    assert run.stopped.reason is reason
    assert (world.asked, world.events) == ([], [])


@pytest.mark.parametrize(
    ("answer", "applies", "is_silent", "result", "start"),
    [
        (Answer.DONE, True, False, TrimResult.ADVANCED, 300),
        (Answer.DONE, False, False, TrimResult.UNKNOWN, 0),
        (Answer.DONE, True, True, TrimResult.UNKNOWN, None),
        (Answer.TIMED_OUT, True, False, TrimResult.ADVANCED, 300),
        (Answer.TIMED_OUT, False, False, TrimResult.TIMED_OUT, 0),
        (Answer.TIMED_OUT, True, True, TrimResult.UNKNOWN, None),
        (Answer.REFUSED, False, False, TrimResult.REFUSED, 0),
        (Answer.REFUSED, False, True, TrimResult.REFUSED, None),
        (Answer.UNKNOWN, True, False, TrimResult.ADVANCED, 300),
        (Answer.UNKNOWN, False, False, TrimResult.UNKNOWN, 0),
    ],
)
def test_the_outcome_is_what_is_read_back(
    world: TrimWorld, answer: Answer, applies: bool, is_silent: bool, result: TrimResult, start: int | None
) -> None:
    """A timeout may have moved the start, and an answer may come from a leader that is none any more."""
    world.answer, world.applies, world.is_silent = Answered(answer=answer, reason="said"), applies, is_silent

    run = world.trim()

    [outcome] = world.outcomes()
    assert (outcome.result, outcome.start_read_back) == (result, start)
    assert "said" in outcome.detail
    assert (run.pending is not None) == (result in (TrimResult.TIMED_OUT, TrimResult.UNKNOWN))


def test_a_late_effect_is_told_under_the_same_certificate(world: TrimWorld) -> None:
    """What timed out is read back in a later turn, without another request."""
    world.answer, world.applies = Answered(answer=Answer.TIMED_OUT, reason="slow"), False
    run = world.trim()
    assert run.pending is not None
    world.disk_start = 300

    later = settle(LOG, PARTITION, run.pending, None, world.ports)

    assert world.asked == [300]
    assert later.pending is None
    [certificate], [first, second] = world.certificates(), world.outcomes()
    assert (first.result, second.result) == (TrimResult.TIMED_OUT, TrimResult.ADVANCED)
    assert {first.certificate_id, second.certificate_id} == {certificate.certificate_id}
