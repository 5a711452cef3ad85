"""What keeps a replay from being begun: each its own error, before anything of the target is touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from backup.errors import BackupError, CannotRestore, GapInTheMiddle, PieceUnreadable, WrongCluster
from backup.plan import Lost, LostBecause, Plan, Range
from backup.plan.codec import plan_of
from backup.topic.source import check_plan, check_versions
from rules.events import RestoreTarget
from tests.backup import plans
from tests.backup.world import World
from tests.tiering.segments.strategies import CLUSTER_ID
from tiering.store.errors import Denied


def expired() -> tuple[World, Plan]:
    world = World()
    for place in range(4):
        world.copy(10 * place, 10 * place + 10)
    world.expire_below(30)
    return world, world.plan(0, 30, target=RestoreTarget.TOPIC)


def _gone(world: World, plan: Plan) -> None:
    world.lifecycle_takes(plan.body.pieces[1].log_object.key)


def _side_files_gone(world: World, plan: Plan) -> None:
    world.lifecycle_takes(plan.body.pieces[1].aux_object.key)


def _tampered(world: World, plan: Plan, content: bytes) -> None:
    ref = plan.body.pieces[1].log_object
    for version in world.kept.objects[ref.key]:
        if version.version_id == ref.version_id:
            version.content = content


def _other_bytes(world: World, plan: Plan) -> None:
    _tampered(world, plan, b"x" * plan.body.pieces[1].log_object.size_bytes)


def _shorter(world: World, plan: Plan) -> None:
    _tampered(world, plan, b"x")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_gone, "has it not any more"),
        (_side_files_gone, "has it not any more"),
        (_other_bytes, "is on record"),
        (_shorter, "1 bytes"),
    ],
)
def test_a_version_that_is_not_the_one_on_record_is_refused(
    spoil: Callable[[World, Plan], None], said: str
) -> None:
    """Gone, with other bytes, or of another size: named by key and version, and no byte of any is read."""
    world, plan = expired()
    check_versions(plan, world.objects)
    spoil(world, plan)

    with pytest.raises(PieceUnreadable, match=said) as refused:
        check_versions(plan, world.objects)

    assert refused.value.key.startswith(plan.body.pieces[1].record.key_stem)
    assert world.store.asked["read"] == 0


def test_credentials_that_may_not_read_versions_are_refused() -> None:
    """By the store's own word, at the first of them."""
    world, plan = expired()
    world.store.refuse("head", Denied)

    with pytest.raises(Denied):
        check_versions(plan, world.objects)


def test_a_plan_that_is_not_for_this_is_refused() -> None:
    """Of another cluster; for another target; with a hole that nobody agreed to pass."""
    topic = plans.plan(target=RestoreTarget.TOPIC)
    hole = plan_of(replace(topic.body, passes_gaps=False))
    cases: list[tuple[Plan, str | None, type[BackupError]]] = [
        (topic, "another", WrongCluster),
        (plans.plan(), CLUSTER_ID, CannotRestore),
        (hole, CLUSTER_ID, GapInTheMiddle),
    ]
    for plan, cluster_id, error in cases:
        with pytest.raises(error):
            check_plan(plan, cluster_id)

    check_plan(topic, CLUSTER_ID)
    check_plan(topic, None)  # nobody is taken for the source


def test_a_loss_at_an_end_or_on_record_is_no_hole() -> None:
    """What was lost before the first piece is told by the plan; a gap on record every reader passes."""
    body = plans.body(target=RestoreTarget.TOPIC, passes_gaps=False)
    first, last = body.pieces
    at_an_end = replace(
        body, pieces=(last,), range=Range(20, 30), lost=(replace(body.lost[0], start=0, end=20),)
    )
    recorded = replace(
        body,
        pieces=(first, last),
        lost=(body.lost[0], Lost(start=10, end=20, because=LostBecause.ON_RECORD, detail="a gap on record")),
    )

    for each in (at_an_end, recorded):
        check_plan(plan_of(each), CLUSTER_ID)
