"""All of a log's life in the tier: the uploader's model, with trim, expiry, holds and policy in between.

After every step T1 to T7 are checked, the rules of removal by a judge who knows nothing of how the services
decide (`removing`). With a guard of trim or of expiry taken away the same machine must find a history that
breaks a property. Deterministic: the same histories in every run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, run_state_machine_as_test

from rules.identity import LogId
from tests.tiering.uploader.removing import Remover, declared
from tests.tiering.uploader.test_model import GUARDED, UNGUARDED, UploaderModel, memory_ends, store_fails
from tests.tiering.uploader.unguarded import Unguarded
from tests.tiering.uploader.world import Killed, kill
from tiering.holds.placing import Means, place, release
from tiering.retention import local
from tiering.retention.expiry import FreedBy
from tiering.retention.facts import TierCopy
from tiering.retention.local import Trim, TrimFacts
from tiering.retention.reasons import Keep
from tiering.segments.records import Hold, LogRecord, ReleasedHold
from tiering.segments.view import LogView
from tiering.uploader.metadata import Metadata

pytestmark = pytest.mark.slow

REMOVALS = st.integers(min_value=1, max_value=6)
POLICY_NAMES = st.sampled_from(["off", "by size", "by size", "by size", "by time", "by time", "trim alone"])
# What a removal may say that it ran into here. Anything else is a defect of its own.
EXPECTED = {"ConnectionError", "MemoryError", "NotFollowed", "ReplicaGone"}


HELD = st.sampled_from([None, None, None, 0, 5, 20])
LEADER_OR_ANY = st.sampled_from([0, 0, 0, 1, 2, 3])
STRIKES = st.sampled_from([kill, store_fails, memory_ends])


class RemovingModel(UploaderModel):
    """The uploader's model, and whatever may be removed in between is."""

    def __init__(self) -> None:
        super().__init__()
        self.remover: Remover

    @initialize(seed=st.integers(min_value=0, max_value=2**16), unclean_allowed=st.booleans())
    def begin(self, seed: int, unclean_allowed: bool) -> None:
        super().begin(seed, unclean_allowed)
        self.remover = Remover(self.world)

    @rule()
    def nobody_holds_any_more(self) -> None:
        at_ms = self.world.now_ms()
        released = ReleasedHold(hold_id="hold", released_by="a test", reason="over", released_at_ms=at_ms)
        release(self.world.log, released, self._means())

    @rule(policy=POLICY_NAMES, more=st.booleans(), held=HELD, broker=LEADER_OR_ANY, turns=st.integers(1, 4))
    def remove(self, policy: str, more: bool, held: int | None, broker: int, turns: int) -> None:
        """Trim and expiry beside the leader, or beside any broker, as people want it now."""
        self._let_there_be_something(policy, more=more, held=held)
        for _ in range(turns):
            self._removal(broker or self.world.cluster.leader_id)

    @rule(policy=POLICY_NAMES, more=st.booleans(), at=REMOVALS, applied=st.booleans(), strike=STRIKES)
    def a_removal_is_cut_off(
        self, policy: str, more: bool, at: int, applied: bool, strike: Callable[[], None]
    ) -> None:
        """kill -9 before or after any of its effects; or an effect is refused, or its answer is lost."""
        self._let_there_be_something(policy, more=more, held=None)
        with self.world.plan.struck(at, applied=applied, strike=strike):
            self._removal(self.world.cluster.leader_id)

    def _let_there_be_something(self, policy: str, *, more: bool, held: int | None) -> None:
        """All agents are up, so that their digests can be compared once the leader's has written again.

        `more` is closed behind what is copied; somebody holds all from `held` on, as `seawall hold` does it.
        """
        self.remover.policy = declared(policy)
        self.remover.begin()
        self.let_there_be_work()
        self.run(self.world.cluster.leader_id)
        if more:
            self.let_there_be_work()
            self.let_there_be_work()
        if held is not None:
            hold = Hold(
                hold_id="hold",
                start_offset=held,
                end_offset=None,
                reason="a finding",
                placed_by="a test",
                placed_at_ms=self.world.now_ms(),
            )
            place(self.world.log, hold, self._means())

    def _removal(self, broker: int) -> None:
        try:
            troubles = self.remover.run(broker)
        except Killed:
            self.world.stop_agent(broker)
            return
        unexpected = [each for each in troubles if each not in EXPECTED]
        assert not unexpected, unexpected

    def _means(self) -> Means:
        agent = self.world.agent(self.world.cluster.leader_id)
        return Means(tier=_Tier(agent.metadata), now_ms=self.world.now_ms, new_id=self.world.new_id)

    @invariant()
    def nothing_was_removed_that_may_not_go(self) -> None:
        """T4, T5: every request, moved start and delete marker is allowed by what was so."""
        if hasattr(self, "remover"):
            assert not self.remover.wrong, self.remover.wrong


class _Tier:
    """An agent's table, which has read all that there is."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata

    def read_on(self) -> None:
        return None

    def view(self, log: LogId) -> LogView | None:
        return self._metadata.view(log)

    def publish_log(self, record: LogRecord) -> int:
        return self._metadata.publish_log(record)


def nothing(*_: object) -> None:
    """Nobody is asked."""


def no_bound(facts: TrimFacts, chain: Sequence[TierCopy], needed_from: int) -> int:
    """T4: what is closed may be trimmed, copied and committed or not."""
    return max((each.end_offset for each in facts.segments), default=0)


def all_expired(walk: object, copy: TierCopy) -> FreedBy:
    """T5: whatever is in the tier is old."""
    return FreedBy.TIME


def under_a_hold(facts: TrimFacts) -> Trim | Keep:
    """T4: what somebody holds is trimmed all the same."""
    for guard in local.GUARDS:
        if guard is not local.nobody_holds and (kept := guard(facts)):
            return kept
    return local._furthest(facts)


TRIM = "tiering.retention.local_trim"  # the audit's own machine stands behind each of its rules
VARIANTS = (
    Unguarded(
        name="t4_past_the_frontier",
        patches={"tiering.retention.local._bound": no_bound, f"{TRIM}.before_trim": nothing},
    ),
    Unguarded(
        name="t4_under_a_hold",
        patches={f"{TRIM}.trim_decision": under_a_hold, f"{TRIM}.before_trim": nothing},
    ),
    Unguarded(name="t5_not_expired", patches={"tiering.retention.expiry._Walk._expired": all_expired}),
    Unguarded(name="t5_no_grace", patches={"tiering.retention.remote._grace": nothing}),
)
TestRemovingModel = RemovingModel.TestCase
TestRemovingModel.settings = settings(GUARDED, max_examples=30)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_the_model_catches_what_is_removed_unguarded(
    monkeypatch: pytest.MonkeyPatch, variant: Unguarded
) -> None:
    """With one guard taken away the same machine finds a removal that may not be."""
    for where, instead in variant.patches.items():
        monkeypatch.setattr(where, instead)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(RemovingModel, settings=UNGUARDED)
