"""The steps of a remedy: which there are, which the verb can do, what a person does, and how long is left.

    HOLD         our agents keep off the log
    KEEP_OUT     a corrupt replica is put last, so that no preferred election makes it leader
    MOVE_OFF     it leads: another one, in sync and earlier in the order, is elected
    PUT_BACK     Kafka's settings of the topic become what was declared
    RESTORE      the prefix is put back into the tier, by the plan that was shown
    STOP         what only a person can do, at the broker's host

The order is that of what runs out first. KAFKA_FACTS 3 says why: once a corrupt follower is elected, the
others copy its start within seconds; before, there is all the time; after, what is left is the delay until
renamed files are removed.

Owns the choice, from what was seen; does nothing. Refuses to make up a step where nothing was seen.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from backup.plan import Plan
from backup.plan.render import lines_of
from rules.machine.explained import restore_command
from seawall.policy.compare import Finding as Difference
from seawall.policy.compare import Kind

# A start that a replica has by itself, and no other has, comes to all of them with its election.
OF_REPLICA = ("START-01", "START-03", "START-04", "HWM-01", "HWM-02", "HWM-03", "META-01")
_RENAME = 'for f in *.deleted; do mv "$f" "${f%.deleted}"; done'
LOST_START = frozenset({"START-01", "START-02", "START-04"})


class Act(str, Enum):
    """The values are stable: scripts match on them."""

    HOLD = "hold"
    KEEP_OUT = "keep_out"
    MOVE_OFF = "move_off"
    PUT_BACK = "put_back"
    RESTORE = "restore"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`can_do`: with --confirm the verb does it. `is_done`: nothing is left to do of it.

    `lines`: what exactly would be done. `minutes_left`: until it is too late; None where that is not known,
    or there is no end.
    """

    act: Act
    says: str
    can_do: bool = False
    is_done: bool = False
    lines: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    minutes_left: float | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was looked at. `None`: it could not be, and `unknown` says why.

    `differences` are the settings that are not what was declared, with the value that would be. `checks_ms`
    is how often brokers look what retention lets go, `removal_ms` how long a renamed file stays,
    `rebalance_ms` how often the controller elects preferred leaders by itself (None: never).
    """

    topic: str
    partition: int | None
    leader: int | None = None
    replicas: tuple[int, ...] = ()
    in_sync: tuple[int, ...] = ()
    is_held: bool = False
    differences: tuple[tuple[Difference, str, str], ...] = ()
    checks_ms: int | None = None
    removal_ms: int | None = None
    rebalance_ms: int | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prospect:
    """Of a restore into the tier: its plan, that readers have all of it, or why neither.

    `unknown`: something could not be looked at.
    """

    plan: Plan | None = None
    is_there: bool = False
    why: str = ""
    unknown: str = ""


def steps_of(
    finding: Mapping[str, Any], seen: Seen, *, now_ms: int, prospect: Prospect | None = None
) -> tuple[Step, ...]:
    """What can be done now, the most pressing first. `prospect`: of a restore, where that was looked at."""
    return tuple(_steps(finding, seen, now_ms, prospect))


def replica_of(finding: Mapping[str, Any]) -> int | None:
    """The broker whose replica the finding is about."""
    part = str(finding["subject"]).split("/", maxsplit=3)[3:]
    word, _, broker = part[0].partition(" ") if part else ("", "", "")
    return int(broker) if word == "replica" and broker.isdecimal() else None


def order_without(replicas: tuple[int, ...], corrupt: int, in_sync: tuple[int, ...]) -> tuple[int, ...]:
    """The same replicas: those in sync first, the corrupt one last, else as they were."""
    others = [each for each in replicas if each != corrupt]
    return (*sorted(others, key=lambda each: each not in in_sync), corrupt)


def _steps(finding: Mapping[str, Any], seen: Seen, now_ms: int, prospect: Prospect | None) -> Iterator[Step]:
    rule_id = str(finding["rule_id"])
    corrupt = replica_of(finding)
    if corrupt is not None and rule_id in OF_REPLICA and finding["status"] == "open":
        yield from _of_replica(corrupt, seen)
    if finding["severity"] == "C" and finding["status"] == "open" and seen.partition is not None:
        yield _hold(seen)
    if rule_id == "RET-03":
        yield from _put_back(seen)
    if corrupt is None and rule_id in LOST_START and finding["status"] == "open":
        yield from _before_files_go(finding, seen, now_ms)
    yield from _restore(finding, prospect)


def _hold(seen: Seen) -> Step:
    log = f"{seen.topic}:{seen.partition}"
    says = "is held: our agents neither trim nor delete" if seen.is_held else "is not held: our agents go on"
    return Step(
        act=Act.HOLD,
        says=f"{log} {says}",
        can_do=not seen.is_held,
        is_done=seen.is_held,
        commands=("seawall hold list",) if seen.is_held else (shlex.join(["seawall", "hold", "findings"]),),
    )


def _of_replica(corrupt: int, seen: Seen) -> Iterator[Step]:
    if seen.leader is None or corrupt not in seen.replicas:
        if seen.replicas:
            yield Step(act=Act.KEEP_OUT, says=f"broker {corrupt} holds no replica any more", is_done=True)
        return
    others = [each for each in seen.in_sync if each != corrupt]
    yield _keep_out(corrupt, seen, others)
    if seen.leader == corrupt and others:
        yield Step(
            act=Act.MOVE_OFF,
            says=f"broker {corrupt} leads: the others copy its start within seconds, if they did not yet. "
            f"Elect {order_without(seen.replicas, corrupt, seen.in_sync)[0]} once broker {corrupt} is last",
            can_do=True,
            minutes_left=0.0,
            values={"leader": order_without(seen.replicas, corrupt, seen.in_sync)[0]},
        )
    yield Step(
        act=Act.STOP,
        says=f"broker {corrupt} stays in the ISR, and is elected where no other is in sync. To be certain, "
        f"stop it, take its directory {seen.topic}-{seen.partition} away (keep it: it is evidence), and "
        "start it: it then copies the leader's log",
    )


def _keep_out(corrupt: int, seen: Seen, others: list[int]) -> Step:
    order = order_without(seen.replicas, corrupt, seen.in_sync)
    is_first = seen.replicas[0] == corrupt
    if seen.replicas[-1] == corrupt and len(seen.replicas) > 1:
        return Step(
            act=Act.KEEP_OUT,
            says=f"broker {corrupt} is last of {_list(seen.replicas)}: no preferred election takes it",
            is_done=True,
        )
    if not others:
        return Step(
            act=Act.KEEP_OUT,
            says=f"no other replica than broker {corrupt}'s is in sync: there is nobody to lead in its place",
        )
    left = seen.rebalance_ms / 60_000 if is_first and seen.rebalance_ms is not None else None
    soon = ""
    if is_first and seen.leader != corrupt:
        soon = " A preferred election makes it leader"
        soon += f", and the controller makes one every {left:.0f} min." if left is not None else "."
    return Step(
        act=Act.KEEP_OUT,
        says=f"broker {corrupt} is at place {seen.replicas.index(corrupt) + 1} of {_list(seen.replicas)}."
        f"{soon} Make it last: {_list(order)}. Nothing is copied or removed by that",
        can_do=True,
        minutes_left=left,
        values={"order": list(order)},
    )


def _put_back(seen: Seen) -> Iterator[Step]:
    if not seen.differences:
        if not seen.unknown:
            yield Step(
                act=Act.PUT_BACK, says=f"{seen.topic}: brokers do what is declared by now", is_done=True
            )
        return
    for difference, setting, value in seen.differences:
        config = shlex.join(
            [
                *("--alter", "--entity-type", "topics", "--entity-name", seen.topic),
                *("--add-config", f"{setting}={value}"),
            ]
        )
        is_shorter = difference.kind is Kind.SHORTER
        yield Step(
            act=Act.PUT_BACK,
            says=f"{difference.detail} (brokers {_list(difference.brokers)})"
            + ("; what is past it goes with the next check" if is_shorter else ""),
            can_do=True,
            commands=(f'kafka-configs.sh --bootstrap-server "$BOOTSTRAP" {config}',),
            minutes_left=seen.checks_ms / 60_000 if is_shorter and seen.checks_ms is not None else None,
            values={"setting": setting, "value": value},
        )


def _before_files_go(finding: Mapping[str, Any], seen: Seen, now_ms: int) -> Iterator[Step]:
    """After the election: files below the new start are renamed at the next check, then removed."""
    if seen.checks_ms is None or seen.removal_ms is None or seen.partition is None:
        return
    gone_ms = int(finding["opened_ms"]) + seen.checks_ms + seen.removal_ms
    left = (gone_ms - now_ms) / 60_000
    if left <= 0:
        yield Step(
            act=Act.STOP,
            says="the brokers have removed their files of the range by now (a check of retention and "
            f"file.delete.delay.ms: {round((seen.checks_ms + seen.removal_ms) / 1000)} s): copies are left",
            is_done=True,
        )
        return
    folder = f"{seen.topic}-{seen.partition}"
    yield Step(
        act=Act.STOP,
        says="the files of the range may still be on disk, renamed to .deleted. Stop brokers "
        f"{_list(seen.replicas)} together, the leader ({seen.leader}) last. BEFORE any of them starts again "
        f"(loading removes such files), take `.deleted` off the names in {folder} on each, and set its entry "
        "in log-start-offset-checkpoint to the first file's base. Then start them, the last leader first",
        commands=(f"cd {shlex.quote(folder)} && {_RENAME}  # in the log dir of each broker",),
        minutes_left=left,
    )


def command_of(finding: Mapping[str, Any]) -> str | None:
    """How its restore is planned; None where no copy of bytes makes it good."""
    return restore_command(
        str(finding["rule_id"]),
        str(finding["finding_id"]),
        int(finding["recoverable_offsets"]),
        str(finding["status"]),
    )


def _restore(finding: Mapping[str, Any], prospect: Prospect | None) -> Iterator[Step]:
    command = command_of(finding)
    if command is None:
        return
    if prospect is not None and prospect.is_there:
        says = "the tier answers for all of it: `seawall read` and `seawall serve` have it"
        yield Step(act=Act.RESTORE, says=says, is_done=True)
        return
    back, lost = finding["recoverable_offsets"], finding["lost_offsets"]
    says = f"{back} offsets can be put back from copies, {lost} have no known copy"
    plan = None if prospect is None else prospect.plan
    if plan is None:
        why = "" if prospect is None or not prospect.why else f"; not into the tier: {prospect.why}"
        yield Step(
            act=Act.RESTORE, says=f"{says}{why}. Read the plan first", commands=(command, *_others(command))
        )
        return
    body = plan.body
    yield Step(
        act=Act.RESTORE,
        says=f"{says}. Into the tier by the plan below; onto brokers' disks or into another topic by hand",
        can_do=True,
        lines=tuple(lines_of(plan)),
        commands=_others(command),
        values={
            "plan": plan.hash,
            "range": [body.range.start, body.range.end],
            "recoverable_offsets": body.recoverable_offsets,
            "lost_offsets": body.lost_offsets,
        },
    )


def _others(command: str) -> tuple[str, ...]:
    """For the two targets that take a person: brokers that stop together, consumers that move over."""
    return (
        f"{command} --target log_directory --out PLAN && seawall backup restore-logdir PLAN",
        f"{command} --target topic --out PLAN && seawall backup restore-topic PLAN --to-topic NAME",
    )


def _list(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
