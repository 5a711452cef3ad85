"""The policy: what is refused and in which words, precedence, and what holds for a topic."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

import rules.policy
from rules.policy import (
    KEYS,
    UNLIMITED,
    Permission,
    Policy,
    PolicyRefused,
    Problem,
    TopicPolicy,
    read_policy,
)
from rules.policy.keys import STREAMS_PURGED
from rules.policy.patterns import Pattern
from tests.rules.policies import DAY_MS, names, policies, trees


def _policy(**tables: dict[str, Any]) -> Policy:
    return read_policy({"topics": tables})


def _refused(tree: dict[str, Any]) -> list[str]:
    with pytest.raises(PolicyRefused) as refused:
        read_policy(tree)
    return [str(problem) for problem in refused.value.problems]


# What a table says.


def test_topic_that_no_table_matches_is_only_observed() -> None:
    """The defaults delete nothing, copy nothing and declare no retention."""
    policy = _policy(orders={"total_retention_ms": "7d"}).effective("payments")

    assert (policy.tiering, policy.trim, policy.remote_deletion) == (False, False, False)
    assert not policy.declares_retention
    assert policy.record_deletion is policy.topic_deletion is Permission.AUTHORISED
    assert policy.patterns == ()


def test_topics_that_streams_purges_are_free_by_default() -> None:
    """Kafka Streams deletes records of its repartition topics all day, unless a table forbids it."""
    policy = read_policy({"topics": {"kept-*": {"record_deletion": "never"}}})

    deletions = [
        policy.effective(topic).record_deletion for topic in ("app-x-repartition", "kept-x-repartition")
    ]

    assert deletions == [Permission.FREE, Permission.NEVER]


@pytest.mark.parametrize(
    ("key", "raw", "value"),
    [
        ("total_retention_ms", "7d", 7 * DAY_MS),
        ("total_retention_ms", "2 w", 14 * DAY_MS),
        ("total_retention_ms", 604_800_000, 7 * DAY_MS),
        ("total_retention_ms", -1, UNLIMITED),
        ("total_retention_bytes", "50GiB", 50 * 2**30),
        ("total_retention_bytes", "50GB", 50 * 10**9),
        ("total_retention_bytes", "unlimited", UNLIMITED),
        ("upload_bytes_per_s", "20MiB", 20 * 2**20),
        ("authorisers", ["bob", "alice"], ("alice", "bob")),
    ],
)
def test_values_are_taken_as_people_write_them(key: str, raw: object, value: object) -> None:
    """Lengths of time and amounts have units; a plain number is in the unit of the key's name."""
    assert getattr(_policy(t={key: raw}).effective("t"), key) == value


def test_undeclared_local_retention_is_the_total_one() -> None:
    """And a retention that is declared in one unit only is unlimited in the other."""
    policy = _policy(t={"total_retention_ms": "7d"}).effective("t")

    assert (policy.local_retention_ms, policy.total_retention_bytes) == (7 * DAY_MS, UNLIMITED)
    assert policy.local_retention_bytes is UNLIMITED
    assert str(policy.origins["local_retention_bytes"]) == "t, by total_retention_bytes"


# Precedence.


def test_each_key_comes_from_the_most_specific_table_that_has_it() -> None:
    """A table only says what it says; the rest comes from less specific ones, and each says from where."""
    policy = read_policy(
        {
            "topics": {
                "orders-eu": {"authorisers": ["alice"]},
                "orders-*": {"total_retention_ms": "90d"},
                "*": {"total_retention_ms": "30d", "tiering": True},
            }
        }
    ).effective("orders-eu")

    assert (policy.total_retention_ms, policy.tiering, policy.authorisers) == (90 * DAY_MS, True, ("alice",))
    assert {key: str(policy.origins[key]) for key in ("total_retention_ms", "tiering", "authorisers")} == {
        "total_retention_ms": "orders-*",
        "tiering": "*",
        "authorisers": "orders-eu",
    }
    assert str(policy.origins["trim"]) == "default"


def test_tables_that_are_equally_specific_may_say_the_same() -> None:
    """Where there is nothing to choose, nothing is refused, and both are named as the origin."""
    policy = read_policy({"topics": {"a*": {"tiering": True}, "*b": {"tiering": True}}}).effective("ab")

    assert str(policy.origins["tiering"]) == "*b, a*"


def test_tables_that_disagree_about_a_topic_are_refused_naming_both() -> None:
    """The message has both tables, the key, both values and a topic, whether or not that topic exists."""
    (problem,) = _refused({"topics": {"orders-*": {"tiering": True}, "*-eu": {"tiering": False}}})

    assert problem == (
        '[topics."*-eu"] `tiering`: false here, and true in [topics."orders-*"]; neither pattern is more '
        "specific than the other, and topics match both: declare it in a table for those, too "
        "(as for a topic named orders-eu)"
    )


def test_table_for_the_topics_of_both_settles_the_disagreement() -> None:
    """What the message advises is what helps; every topic in the overlap has to be settled."""
    disagreeing = {"a*": {"tiering": True}, "*b": {"tiering": False}}

    (left,) = _refused({"topics": {**disagreeing, "ab": {"tiering": True}}})
    policy = read_policy({"topics": {**disagreeing, "a*b": {"tiering": True}}})

    assert left.endswith("(as for a topic named ab)")
    assert policy.effective("ab").tiering is policy.effective("axb").tiering is True


@pytest.mark.slow
@given(policy=policies, topic=names)
def test_policy_that_was_read_has_an_answer_for_every_topic(policy: Policy, topic: str) -> None:
    """Whatever name somebody gives a topic, no tie and no contradiction comes up that reading missed."""
    effective = policy.effective(topic)

    assert {field.name for field in dataclasses.fields(TopicPolicy)} == {*KEYS, "topic", "origins"}
    assert set(effective.origins) == set(KEYS)


@pytest.mark.slow
@given(policy=policies, topic=names)
def test_value_is_that_of_a_matching_table_and_no_other_is_more_specific(policy: Policy, topic: str) -> None:
    """Precedence as it is defined, looked at table by table."""
    effective = policy.effective(topic)
    matching = [table for table in policy.tables if table.pattern.matches(topic)]

    for key in set(KEYS) - {"local_retention_ms", "local_retention_bytes", "total_retention_bytes"}:
        having = [table for table in matching if table.get(key) is not None]
        chosen = [table for table in having if table.pattern.text in effective.origins[key].patterns]
        assert bool(chosen) == bool(having)
        for table in chosen:
            assert table.get(key) == getattr(effective, key)
            inside = [other for other in having if other is not table and table.pattern.covers(other.pattern)]
            assert inside == []


# Round trips and the hash.


@pytest.mark.slow
@given(policy=policies)
def test_policy_reads_back_from_its_own_tree(policy: Policy) -> None:
    """Nothing is lost on the way to the topic and back."""
    assert read_policy(policy.tree()) == policy


@pytest.mark.slow
@given(one=policies, other=policies)
def test_hash_is_that_of_the_content(one: Policy, other: Policy) -> None:
    """Equal policies have one hash, and others another."""
    assert (one.content_hash == other.content_hash) == (one == other)


def test_hash_does_not_depend_on_how_the_file_is_written() -> None:
    """Order, units and the two ways to say unlimited are the file's; what is declared is the same."""
    one = read_policy({"topics": {"a": {"total_retention_ms": "7d", "trim": False}, "b": {"tiering": True}}})
    a = {"trim": False, "total_retention_ms": 604_800_000}
    other = read_policy({"version": 1, "topics": {"b": {"tiering": True}, "a": a}})

    assert one.content_hash == other.content_hash
    assert len(one.content_hash) == 64


def test_hash_stays_what_it_was() -> None:
    """Findings and certificates name policies by their hash: another one needs a new version of the file."""
    policy = read_policy({"topics": {"orders-*": {"total_retention_ms": "30d", "authorisers": ["alice"]}}})

    assert policy.content_hash == "fca7d1016991a898b7ee8e92db41c381c55b1a6a1c33ff0a076af1e5697eb41d"


# Refusals.


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"topics": {"*": {"trimm": True}}}, '[topics."*"] `trimm`: unknown key; did you mean `trim`?'),
        (
            {"topics": {"*": {"retention.ms": "7d"}}},
            '[topics."*"] `retention.ms`: unknown key; did you mean `total_retention_ms`?',
        ),
        ({"topic": {"*": {"trim": True}}}, "`topic`: unknown key; did you mean `topics`?"),
        (
            {"orders-*": {"trim": True}},
            '`orders-*`: unknown key; patterns of topics stand under topics: [topics."orders-*"]',
        ),
        (
            {"trim": True},
            '`trim`: stands outside of a table of topics; begin one before it, such as [topics."*"]',
        ),
        (
            {"topics": {"trim": True}},
            '`topics.trim`: must be a table, [topics."trim"]; did you mean [topics."*"] and `trim` in it?',
        ),
        ({"topics": {"*": {}}}, '[topics."*"]: the table declares nothing'),
        ({}, 'no table of topics, such as [topics."*"]: nothing is declared'),
        ({"version": 2, "topics": {"*": {"trim": False}}}, "`version`: is 2; this Seawall reads version 1"),
        (
            {"topics": {"a?": {"trim": False}}},
            "[topics.\"a?\"]: the pattern is not one of topics' names: '?' is in no topic's name "
            "(a-z A-Z 0-9 . _ -), and * is the only wildcard",
        ),
    ],
)
def test_refusal_names_table_and_key_and_says_what_is_allowed(tree: dict[str, Any], said: str) -> None:
    """Whoever reads the message can correct the file without looking anything up."""
    assert _refused(tree) == [said]


@pytest.mark.parametrize(
    ("key", "raw", "said"),
    [
        (
            "total_retention_ms",
            "7m",
            '"7m" is not allowed; it must be a length of time such as "7d" (ms s min h d w), or a number of '
            'milliseconds, or "unlimited"',
        ),
        (
            "total_retention_bytes",
            "5Gb",
            '"5Gb" is not allowed; it must be an amount such as "50GiB" '
            '(B kB KiB MB MiB GB GiB TB TiB PB PiB), or a number of bytes, or "unlimited"',
        ),
        ("total_retention_ms", 0, '0 is not allowed; it must be at least 1ms, or "unlimited"'),
        ("scrub_interval_ms", "1s", '"1s" is not allowed; it must be at least 1min'),
        ("trim", "yes", '"yes" is not allowed; it must be true or false'),
        ("trim", 1, "1 is not allowed; it must be true or false"),
        ("record_deletion", "ok", '"ok" is not allowed; it must be one of free, authorised, never'),
        ("backup_window_days", True, "true is not allowed; it must be a whole number from 0 to 36500"),
        (
            "authorisers",
            "alice",
            '"alice" is not allowed; it must be a list of names such as ["alice", "team-payments"], or '
            '["*"] for anyone',
        ),
        (
            "authorisers",
            ["*", "bob"],
            '["*", "bob"] is not allowed; it must be a list of names such as ["alice", "team-payments"], or '
            '["*"] for anyone; each once, and * alone',
        ),
    ],
)
def test_value_that_is_not_allowed_is_shown_with_what_is(key: str, raw: object, said: str) -> None:
    """The value as the file has it, and the words for what could stand there."""
    assert _refused({"topics": {"*": {key: raw}}}) == [f'[topics."*"] `{key}`: {said}']


def test_every_problem_is_told_at_once() -> None:
    """One run, one list: nobody mends a file problem by problem."""
    problems = _refused({"topics": {"a": {"trimm": True, "tiering": 1}, "b?": {"tiering": 1}}, "vversion": 1})

    assert [problem.partition(":")[0] for problem in problems] == [
        "`vversion`",
        '[topics."a"] `trimm`',
        '[topics."a"] `tiering`',
        '[topics."b?"]',
    ]


@pytest.mark.parametrize(
    ("entries", "blamed"),
    [
        ({"total_retention_ms": "1d", "local_retention_ms": "2d"}, "local_retention_ms"),
        ({"total_retention_ms": "1d", "local_retention_ms": "unlimited"}, "local_retention_ms"),
        ({"total_retention_bytes": "1GB", "local_retention_bytes": "1GiB"}, "local_retention_bytes"),
        ({"local_retention_ms": "2d"}, "local_retention_ms"),
        ({"trim": True, "total_retention_ms": "1d"}, "trim"),
        ({"trim": True, "tiering": True, "total_retention_ms": "unlimited"}, "trim"),
        ({"remote_deletion": True, "tiering": True}, "remote_deletion"),
        (
            {"remote_deletion": True, "total_retention_ms": "1d", "backup_window_days": 0},
            "backup_window_days",
        ),
        ({"remote_deletion": True, "total_retention_ms": "1d", "delete_grace_ms": 0}, "delete_grace_ms"),
        (
            {"remote_deletion": True, "total_retention_ms": "1d", "blast_limit_segments_per_hour": 0},
            "blast_limit_segments_per_hour",
        ),
        ({"authorisers": []}, "authorisers"),
    ],
)
def test_contradictory_values_are_refused(entries: dict[str, Any], blamed: str) -> None:
    """Either value may be the mistake, so that neither is followed."""
    (problem,) = _refused({"topics": {"t": entries}})

    assert problem.startswith(f'[topics."t"] `{blamed}`: ')
    assert problem.endswith("(as for a topic named t)")


def test_contradiction_between_tables_names_both() -> None:
    """Each table may be right by itself; the message has both values and where each of them stands."""
    (problem,) = _refused(
        {
            "topics": {
                "*": {"total_retention_ms": "30d", "local_retention_ms": "7d"},
                "small-*": {"total_retention_ms": "1d"},
            }
        }
    )

    assert 'local_retention_ms = 7d ([topics."*"]), total_retention_ms = 1d ([topics."small-*"])' in problem
    assert problem.endswith("(as for a topic named small-)")


@pytest.mark.slow
@given(tree=trees)
def test_reading_refuses_or_reads_and_does_nothing_else(tree: dict[str, Any]) -> None:
    """Tables that are well-formed one by one come to a policy, or to problems that each name a table."""
    problems: tuple[Problem, ...] = ()
    patterns: set[str] = set()
    try:
        patterns = {table.pattern.text for table in read_policy(tree).tables}
    except PolicyRefused as refused:
        problems = refused.problems

    assert bool(problems) != (patterns == set(tree["topics"]))
    assert all(problem.table is not None and problem.example for problem in problems)


# The list of keys.


def test_every_key_has_a_default_that_it_would_read_itself() -> None:
    """What holds where nothing is said could also be said."""
    for key in KEYS.values():
        defaults = [value for value in (key.default, key.default_of_purged) if value is not None]
        assert [key.form.read(key.form.plain(value)) for value in defaults] == defaults


def test_purged_topics_are_named_by_a_pattern() -> None:
    """The default that differs holds for names that can be told."""
    assert Pattern(STREAMS_PURGED).matches("app-KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition")


def test_policy_knows_no_file_no_clock_and_no_cluster() -> None:
    """The package imports the standard library's values and itself."""
    folder = Path(rules.policy.__file__).parent
    imported = {
        name.partition(".")[0]
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _names(node)
    }

    assert imported & {"os", "pathlib", "time", "datetime", "tomllib", "tiering", "seawall"} == set()


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
