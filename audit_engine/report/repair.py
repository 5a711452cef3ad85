"""What to do about a finding: the catalogue's words, and commands to copy into a shell.

A command names only what is certain: ids and offsets of the finding, a value that was declared. Names come
from topics and from tables, so each word is quoted for a POSIX shell. `$BOOTSTRAP` is the reader's.

Owns the commands. Refuses to make one up: where only a person can act, there are words alone, and what shows
more. Invariant: nothing that was read can become a second command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from audit_engine.report.values import Gathered, Row, Subject, subject_of
from rules.catalogue import rule
from rules.machine import LogState, authority
from rules.machine.explained import restore_command

_FROM_THE_TIER = frozenset(
    {"START-02", "START-06", "RET-01", "RET-02", "DEL-01", "SEG-02", "HLD-01", "OPS-01", "RET-04"}
)
_OBJECTS = frozenset({"SEG-06", "SEG-08", "OPS-03", "META-02"})
_SETTINGS = {
    "retention.ms": (authority.TOTAL, "ms"),
    "retention.bytes": (authority.TOTAL, "bytes"),
    "local.retention.ms": (authority.LOCAL, "ms"),
    "local.retention.bytes": (authority.LOCAL, "bytes"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """`commands`: in the order in which they are run."""

    words: str
    commands: tuple[str, ...]


def repair(finding: Row, gathered: Gathered, verb: Sequence[str] | None = None) -> Repair:
    """`verb`: of Seawall, if it has one that repairs a finding, such as ("seawall", "remediate")."""
    commands = list(_commands(finding, gathered))
    if verb is not None:
        commands.insert(0, shlex.join([*verb, finding["finding_id"]]))
    commands.append(shlex.join(["seawall", "audit", "explain", finding["finding_id"]]))
    return Repair(words=_words(finding["rule_id"]), commands=tuple(dict.fromkeys(commands)))


def look(topic: str, partition: int) -> str:
    """What the audit says of one log."""
    return shlex.join(["seawall", "audit", "statement", f"{topic}:{partition}"])


def explain(rule_id: str) -> str:
    return shlex.join(["seawall", "rules", "explain", rule_id])


def _words(rule_id: str) -> str:
    try:
        return rule(rule_id).remedy
    except KeyError:  # a newer Seawall's
        return "This Seawall does not know the rule; a newer one judged."


def _commands(finding: Row, gathered: Gathered) -> Iterator[str]:
    rule_id, subject = finding["rule_id"], subject_of(finding["subject"])
    topic = gathered.topics.get((subject.cluster_id, subject.topic_id or ""))
    if rule_id.startswith("AUD-"):
        yield shlex.join(["seawall", "audit", "ingest"])
        yield shlex.join(["seawall", "audit", "run"])
        return
    if topic is None:
        yield explain(rule_id)
        return
    state = _state(subject, gathered)
    if rule_id == "RET-03":
        yield shlex.join(["seawall", "policy", "show", topic])
        yield from _put_back(finding, topic, state)
        return
    if subject.partition is None:
        yield explain(rule_id)
        return
    yield from _of_log(finding, topic, subject.partition, state)


def _restore(finding: Row) -> Iterator[str]:
    """As `audit explain` and `remediate` have it; where its ranges are a log's."""
    command = restore_command(
        str(finding["rule_id"]),
        str(finding["finding_id"]),
        int(finding["recoverable_offsets"]),
        str(finding["status"]),
    )
    if command is not None and finding["ranges"]:
        yield command


def _of_log(finding: Row, topic: str, partition: int, state: LogState | None) -> Iterator[str]:
    rule_id = finding["rule_id"]
    yield from _restore(finding)
    is_ours = state is not None and authority.deployment(state) == "ours"
    if is_ours and rule_id in _OBJECTS:
        yield shlex.join(["seawall", "tier", "scrub", topic, "--listed"])
    if is_ours and rule_id == "SEG-07":
        yield shlex.join(["seawall", "tier", "orphans", topic])
    if is_ours and rule_id == "META-01":
        yield shlex.join(["seawall", "tier", "rebuild", topic, "--compare"])
    if is_ours and rule_id in _FROM_THE_TIER and finding["recoverable_offsets"]:
        for start, end in finding["ranges"]:
            which = (f"{topic}:{partition}", "--from", str(start), "--to", str(end))
            yield shlex.join(["seawall", "read", *which, "--raw", f"{start:020}.log"])
    yield look(topic, partition)


def _put_back(finding: Row, topic: str, state: LogState | None) -> Iterator[str]:
    """The value that was declared, where the finding says which setting it is about."""
    key = str(finding["note"]).partition(" ")[0]
    if state is None or key not in _SETTINGS:
        return
    sort, unit = _SETTINGS[key]
    if authority.deployment(state) == "ours":
        sort = authority.LOCAL  # beside a stock broker the topic's own retention is the disk's
    keeps = authority.authorised_now(state, sort)
    if keeps is None:
        return
    alter = shlex.join(
        [
            *("--alter", "--entity-type", "topics", "--entity-name", topic),
            *("--add-config", f"{key}={getattr(keeps, unit)}"),
        ]
    )
    yield f'kafka-configs.sh --bootstrap-server "$BOOTSTRAP" {alter}'


def _state(subject: Subject, gathered: Gathered) -> LogState | None:
    """Of the log, or of any of the topic's."""
    if subject.log is not None:
        return gathered.states.get(subject.log)
    return next(
        (
            state
            for log, state in sorted(gathered.states.items())
            if (log.cluster_id, log.topic_id) == (subject.cluster_id, subject.topic_id)
        ),
        None,
    )
