"""What may stand in the topic about one log: all that agents write, and what others may write instead.

`lawful` histories are those of agents that look at their tables first; the others also hold records of
deposed leaders, of nobody, of the wrong state, tombstones for what lives, and bytes that are no record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from tests.tiering.segments.model import Model, Said
from tests.tiering.segments.strategies import LOG, gap, log_record, objects_of, segment, segment_id
from tiering.segments.codec import encode_log, encode_segment
from tiering.segments.errors import RecordInvalid
from tiering.segments.keys import log_key, segment_key
from tiering.segments.records import Claim, Gap, LogRecord, SegmentRecord, SegmentState

STARTED, FINISHED, DELETING, DELETED = SegmentState
OFFSETS = 12
EPOCHS = 3
NUMBERS = 4
# Histories that a log may have had: some continue each other, some fork.
LINEAGES: tuple[tuple[tuple[int, int], ...], ...] = (
    ((0, 0),),
    ((0, 0), (1, 4)),
    ((0, 0), (1, 4), (2, 8)),
    ((0, 0), (2, 3)),
    ((0, 0), (2, 6), (3, 9)),
)
LEGAL = {
    STARTED: (FINISHED, FINISHED, FINISHED, DELETING, STARTED),
    FINISHED: (DELETING, FINISHED),
    DELETING: (DELETED, DELETED, DELETING),
    DELETED: (DELETED,),
}
GARBAGE = b"no record at all"


class History:
    """Grows by one record at a time; `model` is what it means so far, with every rule in force."""

    def __init__(self, draw: st.DrawFn, complete_from: int) -> None:
        self.draw = draw
        self.said: list[Said] = []
        self.model = Model(complete_from=complete_from)

    def say(self, key: bytes, value: bytes | None, content: SegmentRecord | LogRecord | None) -> None:
        self.said.append(Said(len(self.said), key, value, content))
        self.model.take(self.said[-1])

    def say_segment(self, record: SegmentRecord) -> None:
        try:
            value = encode_segment(record)
        except RecordInvalid:
            return  # no writer of ours would
        self.say(segment_key(LOG, record.segment_id), value, record)

    def say_log(self, record: LogRecord) -> None:
        try:
            value = encode_log(record)
        except RecordInvalid:
            return
        self.say(log_key(LOG), value, record)

    def known(self) -> list[SegmentRecord]:
        return [each.record for each in self.model.segments.values() if each.record is not None]

    def new(self, number: int) -> SegmentRecord:
        """Any segment with this id."""
        lineage = self.draw(st.sampled_from(LINEAGES))
        base = self.draw(st.integers(0, OFFSETS - 1))
        end = self.draw(st.integers(base + 1, min(base + 6, OFFSETS)))
        holding = [(epoch, max(start, base)) for epoch, start in lineage if start < end]
        own = dict(sorted((start, epoch) for epoch, start in holding))  # of one start the last epoch
        epochs = tuple((epoch, start) for start, epoch in own.items())
        epoch = self.draw(st.integers(epochs[-1][0], EPOCHS))
        record = segment(number, base, end, epochs=epochs, leader_epoch=epoch)
        if end - base > 2 and self.draw(st.integers(0, 5)) == 0:
            record = replace(record, record_count=end - base - 1)
        return record


def _start(history: History) -> None:
    """An attempt has an id that nobody ever had: also one that was forgotten is never given again."""
    used = {each.key for each in history.said}
    free = [number for number in range(NUMBERS) if segment_key(LOG, segment_id(number)) not in used]
    if free:
        record = history.new(free[0])
        highest = max((claim.epoch for claim in history.model.claims), default=0)
        history.say_segment(replace(record, state=STARTED, leader_epoch=max(record.leader_epoch, highest)))
        if history.draw(st.booleans()):
            history.say_segment(replace(record, leader_epoch=max(record.leader_epoch, highest)))


def _step(history: History) -> None:
    known = history.known()
    if known:
        record = history.draw(st.sampled_from(known))
        state = history.draw(st.sampled_from(LEGAL[record.state]))
        highest = max((claim.epoch for claim in history.model.claims), default=0)
        if record.state is STARTED and state is not STARTED:
            record = replace(record, objects=objects_of(record.key_stem, record.size_bytes))
        history.say_segment(replace(record, state=state, leader_epoch=max(record.leader_epoch, highest)))


def _forget(history: History) -> None:
    gone = [each for each in history.known() if each.state is DELETED]
    if gone:
        record = history.draw(st.sampled_from(gone))
        history.say(segment_key(LOG, record.segment_id), None, None)


def _claim(history: History) -> None:
    """The next leader's claim, or another record of the standing one, as its agent would write it."""
    model, draw = history.model, history.draw
    highest = max((claim.epoch for claim in model.claims), default=0)
    epoch = draw(st.integers(highest, EPOCHS))
    own = sorted(claim for claim in model.claims if claim.epoch == epoch)
    earlier: list[Claim] = []
    for claim in sorted(model.claims, key=lambda each: (each.offset, each.epoch)):
        rises = not earlier or claim.epoch > earlier[-1].epoch
        if claim.epoch < epoch and rises and (not own or claim.offset < own[0].offset):
            earlier.append(claim)
    history.say_log(
        replace(
            _log_record(history, epoch),
            based_on=model.record_offset,
            claim_offset=own[0].offset if own and model.record_offset is not None else None,
            earlier_claims=tuple(earlier),
        )
    )


def _log_record(history: History, epoch: int) -> LogRecord:
    draw = history.draw
    fitting = [each for each in LINEAGES if each[-1][0] <= epoch]
    gaps: tuple[Gap, ...] = ()
    if draw(st.integers(0, 2)) == 0:
        start = draw(st.sampled_from((0, 0, 2, 5, 8)))
        gaps = (gap(start, start + draw(st.integers(1, 6)), draw(st.sampled_from((0, 0, epoch)))),)
    return replace(
        log_record(epoch, epochs=draw(st.sampled_from(fitting))),
        gaps=gaps,
        log_start=draw(st.sampled_from((0, 0, 0, 2, 5))),
        first_tiered_offset=draw(st.sampled_from((0, 0, 0, 3))),
        topic_deleted_at_ms=draw(st.sampled_from((None, None, None, 1))),
    )


def _blind_segment(history: History) -> None:
    """A record by whoever did not look: any state, generation, epoch; the id's content, or another."""
    draw = history.draw
    known = history.known()
    new = history.new(draw(st.integers(0, NUMBERS - 1)))
    record = draw(st.sampled_from([*known, new]))
    state = draw(st.sampled_from(SegmentState))
    if state is FINISHED and record.objects.log is None:
        record = replace(record, objects=objects_of(record.key_stem, record.size_bytes))
    history.say_segment(
        replace(
            record,
            state=state,
            generation=draw(st.integers(0, 1)),
            leader_epoch=draw(st.integers(record.leader_epochs[-1].epoch, EPOCHS)),
        )
    )


def _blind_log(history: History) -> None:
    draw = history.draw
    epoch = draw(st.integers(0, EPOCHS))
    based_on = draw(st.none() | st.integers(0, max(0, len(history.said) - 1)))
    history.say_log(replace(_log_record(history, epoch), based_on=based_on))


def _tombstone(history: History) -> None:
    number = history.draw(st.integers(0, NUMBERS))
    key = log_key(LOG) if number == NUMBERS else segment_key(LOG, segment_id(number))
    history.say(key, None, None)


def _garbage(history: History) -> None:
    number = history.draw(st.integers(0, NUMBERS))
    key = log_key(LOG) if number == NUMBERS else segment_key(LOG, segment_id(number))
    history.say(key, GARBAGE, None)


Act = Callable[[History], None]
LAWFUL: Sequence[Act] = (_start, _start, _start, _step, _step, _step, _claim, _claim, _forget)
BLIND: Sequence[Act] = (_blind_segment, _blind_segment, _blind_log, _tombstone, _garbage)


@st.composite
def histories(
    draw: st.DrawFn, *, lawful: bool = False, max_acts: int = 14, complete_from: int = 0
) -> list[Said]:
    """Records of one log, from offset 0 on."""
    history = History(draw, complete_from)
    if draw(st.integers(0, 4)):
        _claim(history)
    acts = LAWFUL if lawful else (*LAWFUL, *BLIND)
    for act in draw(st.lists(st.sampled_from(acts), min_size=1, max_size=max_acts)):
        act(history)
    return history.said
