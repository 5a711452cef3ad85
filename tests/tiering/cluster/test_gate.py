"""T1, only committed data leaves: each condition of the gate, and what happens without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.tiering.cluster.partition_model import BROKERS, Kind, PartitionModel
from tiering.cluster.gate import (
    Eligible,
    LogView,
    NotLeader,
    NotYet,
    Verdict,
    Wait,
    committed_bound,
    confirm,
    may_leave,
)
from tiering.cluster.interface import Cause, LeaderOffsets, Leadership, Recovery, Unknown
from tiering.log.wire import Uuid

pytestmark = pytest.mark.slow

TOPIC = Uuid("CgkTzsXgRlOwPTRJHnL2yg")
OTHER_TOPIC = Uuid("3cVtEW_RTm2TSqxDBnRsEA")
LEADERSHIP = Leadership(
    topic="orders",
    topic_id=TOPIC,
    partition=0,
    leader_id=1,
    leader_epoch=5,
    replicas=(1, 2, 3),
    isr=(1, 2, 3),
    recovery=Recovery.RECOVERED,
)
OFFSETS = LeaderOffsets(
    topic_id=TOPIC, leader_id=1, leader_epoch=5, high_watermark=100, last_stable_offset=90, log_start=0
)
VIEW = LogView(
    broker_id=1,
    topic_id=TOPIC,
    leadership=LEADERSHIP,
    offsets=OFFSETS,
    local_epoch=5,
    checkpoint_high_watermark=None,
)
TOPICS_MAX = 3
NOBODY_ANSWERED = Unknown(cause=Cause.NO_ANSWER, reason="timed out")


_brokers = st.sampled_from(BROKERS)
_kinds: st.SearchStrategy[Kind] = st.sampled_from(["plain", "plain", "opens", "decides"])


def wait_of(verdict: Verdict) -> Wait:
    assert isinstance(verdict, NotYet), verdict
    return verdict.wait


def test_t1_what_ends_below_the_last_stable_offset_may_leave() -> None:
    """The bound is the least of high watermark and last stable offset, and is inclusive as an end."""
    assert committed_bound(VIEW) == Eligible(leader_epoch=5, bound=90)
    assert may_leave(VIEW, 90) == Eligible(leader_epoch=5, bound=90)


@pytest.mark.parametrize(
    ("end_offset", "checkpoint", "wait"),
    [
        (101, None, Wait.NOT_COMMITTED),
        (91, None, Wait.OPEN_TRANSACTION),
        (90, 89, Wait.CHECKPOINT_BEHIND),
    ],
)
def test_t1_what_ends_above_waits_and_says_for_what(
    end_offset: int, checkpoint: int | None, wait: Wait
) -> None:
    """An operator sees whether replication, a hanging transaction or a checkpoint holds a segment back."""
    view = replace(VIEW, checkpoint_high_watermark=checkpoint)

    assert wait_of(may_leave(view, end_offset)) is wait


@pytest.mark.parametrize(("checkpoint", "bound"), [(None, 90), (0, 0), (89, 89), (90, 90), (10**9, 90)])
def test_t1_a_checkpoint_may_lower_the_bound_and_never_raises_it(checkpoint: int | None, bound: int) -> None:
    """A file that a disk brought back from yesterday, or from another topic, lets nothing out."""
    view = replace(VIEW, checkpoint_high_watermark=checkpoint)

    assert committed_bound(view) == Eligible(leader_epoch=5, bound=bound)


@pytest.mark.parametrize(
    ("change", "wait"),
    [
        ({"offsets": replace(OFFSETS, leader_epoch=6)}, Wait.EPOCHS_DIFFER),
        ({"offsets": replace(OFFSETS, leader_epoch=4)}, Wait.EPOCHS_DIFFER),
        ({"local_epoch": 4}, Wait.EPOCHS_DIFFER),
        ({"leadership": replace(LEADERSHIP, leader_epoch=6)}, Wait.EPOCHS_DIFFER),
        ({"offsets": replace(OFFSETS, leader_id=2)}, Wait.LEADERS_DIFFER),
        ({"offsets": replace(OFFSETS, topic_id=OTHER_TOPIC)}, Wait.TOPICS_DIFFER),
        ({"leadership": replace(LEADERSHIP, topic_id=OTHER_TOPIC)}, Wait.TOPICS_DIFFER),
    ],
)
def test_t1_views_that_do_not_agree_let_nothing_out(change: dict[str, object], wait: Wait) -> None:
    """Leader, metadata and disk must be of one topic, one leader and one epoch."""
    view = replace(VIEW, **change)  # type: ignore[arg-type]

    assert wait_of(committed_bound(view)) is wait


def test_another_leader_is_a_fact_and_an_unknown_one_is_not() -> None:
    """ "Not led by this broker" is said only if somebody said who leads, or that nobody does."""
    elsewhere = replace(VIEW, leadership=replace(LEADERSHIP, leader_id=2))
    nowhere = replace(VIEW, leadership=replace(LEADERSHIP, leader_id=None))

    assert committed_bound(elsewhere) == NotLeader(leader_id=2)
    assert committed_bound(nowhere) == NotLeader(leader_id=None)
    assert committed_bound(replace(VIEW, leadership=NOBODY_ANSWERED)) == NOBODY_ANSWERED


@pytest.mark.parametrize(
    "change",
    [
        {"leadership": NOBODY_ANSWERED},
        {"offsets": NOBODY_ANSWERED},
        {"local_epoch": None},
        {"leadership": replace(LEADERSHIP, leader_epoch=None)},
    ],
)
def test_t1_what_is_not_known_lets_nothing_out(change: dict[str, object]) -> None:
    """A partial answer is an Unknown with its cause, whichever part is missing."""
    verdict = may_leave(replace(VIEW, **change), 1)  # type: ignore[arg-type]

    assert isinstance(verdict, Unknown)


def test_t1_is_asked_again_before_the_copy_counts() -> None:
    """A copy that began in one epoch is not finished in another, though its bytes were committed in both."""
    begun = may_leave(VIEW, 90)
    assert isinstance(begun, Eligible)
    later = replace(
        VIEW,
        leadership=replace(LEADERSHIP, leader_epoch=7),
        offsets=replace(OFFSETS, leader_epoch=7),
        local_epoch=7,
    )

    assert confirm(begun, VIEW, 90) == begun
    assert wait_of(confirm(begun, later, 90)) is Wait.EPOCH_MOVED
    assert confirm(begun, replace(VIEW, offsets=NOBODY_ANSWERED), 90) == NOBODY_ANSWERED


# What each condition is for: a history in which the gate without it lets out what is not committed.

Unguard = Callable[[LogView], LogView]


def _leadership(view: LogView) -> Leadership:
    assert isinstance(view.leadership, Leadership)
    return view.leadership


def _offsets(view: LogView) -> LeaderOffsets:
    assert isinstance(view.offsets, LeaderOffsets)
    return view.offsets


def whatever_epoch_answered(view: LogView) -> LogView:
    led = _leadership(view)
    assert led.leader_epoch is not None
    answer = replace(_offsets(view), leader_epoch=led.leader_epoch, leader_id=view.broker_id)
    return replace(view, offsets=answer)


def whatever_epoch_is_on_disk(view: LogView) -> LogView:
    answer = replace(_offsets(view), leader_id=view.broker_id)
    return replace(view, local_epoch=_leadership(view).leader_epoch, offsets=answer)


def whatever_topic_it_is(view: LogView) -> LogView:
    led = replace(_leadership(view), topic_id=view.topic_id)
    return replace(view, leadership=led, offsets=replace(_offsets(view), topic_id=view.topic_id))


def whatever_is_undecided(view: LogView) -> LogView:
    answer = _offsets(view)
    return replace(view, offsets=replace(answer, last_stable_offset=answer.high_watermark))


def whatever_the_checkpoint_says(view: LogView) -> LogView:
    raised = view.checkpoint_high_watermark
    assert raised is not None
    answer = replace(_offsets(view), high_watermark=raised, last_stable_offset=raised)
    return replace(view, offsets=answer)


def whoever_leads(view: LogView) -> LogView:
    led = replace(_leadership(view), leader_id=view.broker_id)
    return replace(view, leadership=led, offsets=replace(_offsets(view), leader_id=view.broker_id))


def _with_a_divergent_tail() -> PartitionModel:
    """Broker 1, deposed without knowing, holds two records that nobody has; broker 2 commits five others."""
    model = PartitionModel()
    model.produce(1)
    model.fetch(2)
    model.fetch(3)
    model.commit()
    model.produce(1)
    model.produce(1)
    model.elect(2)
    model.hear(2)
    model.shrink(1)
    for _ in range(5):
        model.produce(2)
    model.fetch(3)
    model.commit()
    return model


def deposed_leader_asks_the_new_one() -> tuple[PartitionModel, LogView]:
    model = _with_a_divergent_tail()
    answer = model.answer(2)
    assert answer is not None
    return model, model.view(1, answer)


def metadata_ends_in_an_election_that_never_was() -> tuple[PartitionModel, LogView]:
    model = _with_a_divergent_tail()
    model.elect(3)  # epoch 2 is broker 3's
    model.hear(3)
    model.commit()
    model.fetch(2)
    model.commit()
    answer = model.answer(3)
    assert answer is not None
    model.epoch -= 1
    model.see_uncommitted(1, leader=1)  # and host 1 has read that it is broker 1's
    model.epoch += 1
    return model, model.view(1, answer)


def topic_made_anew() -> tuple[PartitionModel, LogView]:
    model = PartitionModel()
    model.produce(1)  # in the old topic, on no other broker
    model.produce(1)
    model.create(leader=1)
    offsets = LeaderOffsets(
        topic_id=model.topic_id,
        leader_id=1,
        leader_epoch=0,
        high_watermark=9,
        last_stable_offset=9,
        log_start=0,
    )
    return model, model.view(1, offsets)


def transaction_left_open() -> tuple[PartitionModel, LogView]:
    model = PartitionModel()
    model.produce(1)
    model.produce(1, "opens")
    model.produce(1)
    model.fetch(2)
    model.fetch(3)
    model.commit()
    answer = model.answer(1)
    assert answer is not None
    return model, model.view(1, answer)


def checkpoint_from_elsewhere() -> tuple[PartitionModel, LogView]:
    model = PartitionModel()
    model.produce(1)
    answer = model.answer(1)
    assert answer is not None
    return model, model.view(1, answer, checkpoint=1)


CASES = [
    (deposed_leader_asks_the_new_one, whatever_epoch_answered),
    (metadata_ends_in_an_election_that_never_was, whatever_epoch_is_on_disk),
    (topic_made_anew, whatever_topic_it_is),
    (transaction_left_open, whatever_is_undecided),
    (checkpoint_from_elsewhere, whatever_the_checkpoint_says),
]


@pytest.mark.parametrize(("history", "unguard"), CASES, ids=lambda each: each.__name__)
def test_t1_without_any_one_of_its_conditions_lets_out_what_is_not_committed(
    history: Callable[[], tuple[PartitionModel, LogView]], unguard: Unguard
) -> None:
    """The gate holds in this history; the same gate with one condition taken away breaks T1 in it."""
    model, view = history()
    guarded = committed_bound(view)
    unguarded = committed_bound(unguard(view))

    assert not isinstance(guarded, Eligible) or model.is_committed_here(view.broker_id, guarded.bound)
    assert isinstance(unguarded, Eligible)
    assert not model.is_committed_here(view.broker_id, unguarded.bound)


def test_t1_only_the_leader_of_an_epoch_copies_in_it() -> None:
    """A follower in sync has the same committed bytes; let out by both, they would be copied twice."""
    model = PartitionModel()
    model.produce(1)
    model.fetch(2)
    model.fetch(3)
    model.commit()
    answer = model.answer(1)
    assert answer is not None
    view = model.view(2, answer)

    assert committed_bound(view) == NotLeader(leader_id=1)
    assert isinstance(committed_bound(whoever_leads(view)), Eligible)


class Gated(RuleBasedStateMachine):
    """Brokers, elections and late views at random; the gate is asked with whatever an agent might have."""

    gate: Callable[[LogView], Verdict] = staticmethod(committed_bound)

    def __init__(self) -> None:
        super().__init__()
        self.model = PartitionModel()
        self.answers: list[LeaderOffsets] = []  # an answer may be as old as the agent is slow
        self.epochs_read: list[tuple[int, Uuid, int]] = []

    @rule(kinds=st.lists(_kinds, max_size=3), followers=st.permutations(BROKERS), behind=st.integers(0, 2))
    def replicate(self, kinds: list[Kind], followers: list[int], behind: int) -> None:
        """The leader takes records, and all but `behind` of the brokers fetch them."""
        self.model.hear(self.model.leader)
        for kind in kinds:
            self.model.produce(self.model.leader, kind)
        for broker in followers[behind:]:
            self.model.fetch(broker)
        self.model.commit()

    @rule(leader=_brokers, tail=st.integers(0, 3), is_heard=st.booleans())
    def fail_over(self, leader: int, tail: int, is_heard: bool) -> None:
        """Another leads; the old one goes on for a while and drops out."""
        old = self.model.leader
        self.model.elect(leader)
        for _ in range(tail):
            self.model.produce(old)
        if is_heard:
            self.model.hear(leader)
        self.model.shrink(old)

    @rule(broker=_brokers)
    def come_back(self, broker: int) -> None:
        self.model.fetch(broker)
        self.model.expand(broker)

    @rule(broker=_brokers)
    def hear(self, broker: int) -> None:
        self.model.hear(broker)

    @rule(host=_brokers)
    def see(self, host: int) -> None:
        self.model.see(host)

    @rule(host=_brokers, leader=_brokers)
    def see_uncommitted(self, host: int, leader: int) -> None:
        self.model.see_uncommitted(host, leader)

    @precondition(lambda self: self.model.topics < TOPICS_MAX)
    @rule(leader=_brokers)
    def create_anew(self, leader: int) -> None:
        self.model.create(leader)

    @rule(broker=_brokers)
    def ask_and_be_slow(self, broker: int) -> None:
        self.answers += filter(None, [self.model.answer(broker)])
        replica = self.model.replicas[broker]
        if replica.epochs:
            self.epochs_read.append((broker, replica.topic_id, replica.epochs[-1][0]))

    @rule(data=st.data(), host=_brokers, checkpoint=st.none() | st.integers(0, 20))
    def t1_only_committed_data_leaves(self, data: st.DataObject, host: int, checkpoint: int | None) -> None:
        topic_id = self.model.replicas[host].topic_id
        now = [answer for broker in BROKERS if (answer := self.model.answer(broker))]
        read = [epoch for broker, topic, epoch in self.epochs_read if (broker, topic) == (host, topic_id)]
        answers = [*now, *self.answers[-4:]]
        if not answers:
            return
        offsets = data.draw(st.sampled_from(answers))
        epoch = data.draw(st.sampled_from([None, None, *read[-2:]]))
        verdict = self.gate(self.model.view(host, offsets, checkpoint=checkpoint, epoch=epoch))
        if isinstance(verdict, Eligible):
            assert self.model.is_committed_here(host, verdict.bound)
            assert self.model.leaders[topic_id, verdict.leader_epoch] == host


TestGated = Gated.TestCase
TestGated.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def trusting(view: LogView) -> Verdict:
    """What a naive agent does: whoever answers, whatever it says."""
    answer = _offsets(view)
    return Eligible(leader_epoch=answer.leader_epoch, bound=answer.high_watermark)


def test_t1_the_machine_sees_a_gate_that_asks_nothing_fail() -> None:
    """The random histories hold what the gate is for, so that passing them means something."""

    class Unguarded(Gated):
        gate = staticmethod(trusting)

    searching = settings(
        max_examples=500, stateful_step_count=40, deadline=None, phases=[Phase.generate], derandomize=True
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(Unguarded, settings=searching)
