"""Which steps a finding has, from what was seen: what the verb can do, what a person can, and how soon."""

from __future__ import annotations

from typing import Any

import pytest

from backup.plan.render import lines_of
from rules.identity import LogId
from seawall.policy.compare import Finding as Difference
from seawall.policy.compare import Kind
from seawall.remedies.steps import Act, Prospect, Seen, Step, order_without, replica_of, steps_of
from tests.backup.plans import plan
from tests.seawall.holds.cases import finding

LOG = LogId("c1", "T1", 0)
MINUTE_MS = 60_000
RESTORABLE = finding(LOG, recoverable_offsets=10)


def seen(**given: Any) -> Seen:
    usual: dict[str, Any] = {
        "topic": "orders",
        "partition": 0,
        "leader": 1,
        "replicas": (3, 1, 2),
        "in_sync": (1, 2, 3),
        "checks_ms": 5 * MINUTE_MS,
        "removal_ms": MINUTE_MS,
        "rebalance_ms": 5 * MINUTE_MS,
    }
    return Seen(**{**usual, **given})


def of_replica(broker: int, **given: Any) -> dict[str, Any]:
    subject = f"c1/T1/0/replica {broker}"
    return finding(LOG, rule_id="START-04", subject=subject, **given)


def steps(
    told: dict[str, Any], at: Seen, now_ms: int = 0, prospect: Prospect | None = None
) -> dict[Act, Step]:
    return {each.act: each for each in steps_of(told, at, now_ms=now_ms, prospect=prospect)}


def test_a_preferred_corrupt_replica_is_put_last_before_the_controller_elects_it() -> None:
    """The first of the list, and the minutes until the next rebalance; in-sync replicas come first."""
    first = next(iter(steps_of(of_replica(3), seen(in_sync=(2, 3, 1)), now_ms=0)))

    assert (first.act, first.can_do, first.minutes_left) == (Act.KEEP_OUT, True, 5.0)
    assert first.values == {"order": [1, 2, 3]}
    assert order_without((3, 1, 2), 3, (2, 3)) == (2, 1, 3)


def test_without_automatic_elections_there_is_time() -> None:
    """Nobody elects it but a person."""
    step = steps(of_replica(3), seen(rebalance_ms=None))[Act.KEEP_OUT]

    assert step.minutes_left is None
    assert "A preferred election makes it leader." in step.says


@pytest.mark.parametrize(
    ("replicas", "in_sync", "is_done", "can_do"),
    [
        ((1, 2, 3), (1, 2, 3), True, False),
        ((1, 3, 2), (1, 2, 3), False, True),
        ((3, 1, 2), (3,), False, False),
        ((1, 2), (1, 2), True, False),
    ],
    ids=["last already", "in the middle", "nobody else in sync", "no replica any more"],
)
def test_whether_there_is_something_to_do(
    replicas: tuple[int, ...], in_sync: tuple[int, ...], is_done: bool, can_do: bool
) -> None:
    """By where the replica stands, and whether anybody could lead in its place."""
    step = steps(of_replica(3), seen(replicas=replicas, in_sync=in_sync))[Act.KEEP_OUT]

    assert (step.is_done, step.can_do) == (is_done, can_do)


def test_one_that_leads_hands_over_to_the_first_in_sync() -> None:
    """At once, and only where somebody else is in sync."""
    found = steps(of_replica(3), seen(leader=3))

    assert (found[Act.MOVE_OFF].values, found[Act.MOVE_OFF].minutes_left) == ({"leader": 1}, 0.0)
    assert Act.MOVE_OFF not in steps(of_replica(3), seen(leader=3, in_sync=(3,)))
    assert Act.MOVE_OFF not in steps(of_replica(3), seen())


def test_a_broker_that_must_be_stopped_is_named() -> None:
    """What only a person can do is told with its steps, never as done."""
    stop = steps(of_replica(3), seen())[Act.STOP]

    assert "broker 3" in stop.says
    assert "orders-0" in stop.says
    assert not stop.can_do


def test_a_critical_finding_is_held_first_or_is_held() -> None:
    """What the verb can do itself; a lesser one asks for no hold."""
    told = finding(LOG)

    assert steps(told, seen())[Act.HOLD].can_do
    assert steps(told, seen(is_held=True))[Act.HOLD].is_done
    assert Act.HOLD not in steps(finding(LOG, severity="E"), seen())


def test_files_are_there_for_a_check_and_a_delay() -> None:
    """After an election: how long until they are removed, and that they are gone after it."""
    told = finding(LOG, opened_ms=0)

    early = steps(told, seen(), now_ms=2 * MINUTE_MS)[Act.STOP]
    late = steps(told, seen(), now_ms=7 * MINUTE_MS)[Act.STOP]

    assert early.minutes_left == 4.0
    assert ".deleted" in early.commands[0]
    assert late.is_done
    assert Act.STOP not in steps(told, seen(checks_ms=None))


def test_settings_are_put_back_to_what_is_declared() -> None:
    """One command a setting; a shorter retention deletes at the next check, a longer one never."""
    shorter = Difference(kind=Kind.SHORTER, key="total_retention_ms", detail="1h, not 7d", brokers=(1, 2))
    longer = Difference(kind=Kind.LONGER, key="total_retention_bytes", detail="unlimited, not 1GiB")
    told = finding(LOG, rule_id="RET-03", subject="c1/T1", ranges=[])
    both = ((shorter, "retention.ms", "604800000"), (longer, "retention.bytes", "1073741824"))

    one, two = steps_of(told, seen(partition=None, differences=both), now_ms=0)

    assert (one.minutes_left, two.minutes_left) == (5.0, None)
    assert "--add-config retention.ms=604800000" in one.commands[0]
    [done] = steps_of(told, seen(partition=None), now_ms=0)
    assert done.is_done
    assert steps_of(told, seen(partition=None, unknown=("silent",)), now_ms=0) == ()


def test_what_can_be_restored_has_its_command() -> None:
    """The exact command of the plan; nothing where there is no copy, or it was restored."""
    told = finding(LOG, recoverable_offsets=10)

    assert steps(told, seen())[Act.RESTORE].commands[0] == f"seawall backup plan --finding {'f' * 32}"
    assert Act.RESTORE not in steps(finding(LOG), seen())
    assert Act.RESTORE not in steps(finding(LOG, recoverable_offsets=10, status="restored"), seen())


def test_the_replica_is_read_from_the_subject() -> None:
    """Of other parts, and of whole logs, there is none."""
    assert replica_of(of_replica(12)) == 12
    assert replica_of(finding(LOG)) is None
    assert replica_of(finding(LOG, subject="c1/T1/0/segment x")) is None


def test_what_can_be_restored_is_shown_before_it_is_done() -> None:
    """The plan in its own words; the other targets are commands; what is there again is done."""
    made = plan()

    step = steps(RESTORABLE, seen(), prospect=Prospect(plan=made))[Act.RESTORE]

    assert step.can_do
    assert step.lines == tuple(lines_of(made))
    assert (step.values["plan"], step.values["range"]) == (made.hash, [5, 30])
    assert [word for word in ("log_directory", "topic") if f"--target {word}" in " ".join(step.commands)] == [
        "log_directory",
        "topic",
    ]
    assert steps(RESTORABLE, seen(), prospect=Prospect(is_there=True))[Act.RESTORE].is_done


def test_what_has_no_plan_says_why() -> None:
    """It is for a person then, and not done."""
    step = steps(RESTORABLE, seen(), prospect=Prospect(why="no version is left"))[Act.RESTORE]

    assert (step.can_do, step.is_done) == (False, False)
    assert "not into the tier: no version is left" in step.says
