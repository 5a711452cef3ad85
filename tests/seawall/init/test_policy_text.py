"""The policy that is written: what brokers do, to the value, and nothing opted in."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rules.policy import KEYS, Policy, read_policy
from seawall.init.policy_text import declare, policy_text
from seawall.init.rates import rates
from seawall.policy.compare import Compared, Kind, compare
from seawall.policy.file import read_file
from tests.seawall.init.world import REFUSED, Topic, World, world_of
from tiering.cluster.interface import Cause, Unknown
from tiering.cluster.topics import is_internal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]  # mypy runs on newer ones too

WEEK_MS = 7 * 86_400_000


def written(world: World) -> str:
    seen = world.seen(observe_s=0)
    return policy_text(declare(seen), seen, rates(seen, seen.topics), where="cluster x")


def read(text: str) -> Policy:
    return read_policy(tomllib.loads(text))


def compared(world: World) -> dict[str, Compared]:
    """As `seawall policy check` would, which looks at no internal topic."""
    policy, seen = read(written(world)), world.seen(observe_s=0)
    own = {name: found for name, found in seen.settings.items() if not is_internal(name)}
    return {each.topic: each for each in compare(policy, own)}


limits = st.one_of(st.just(-1), st.integers(1, 2**63 - 1), st.sampled_from([1, 86_400_000, WEEK_MS]))


@st.composite
def topics(draw: st.DrawFn) -> Topic:
    own: dict[str, str] = {}
    if draw(st.booleans()):
        own["cleanup.policy"] = draw(st.sampled_from(["delete", "compact", "compact,delete"]))
    for name in ("retention.ms", "retention.bytes"):
        if draw(st.booleans()):
            own[name] = str(draw(limits))
    if draw(st.booleans()):
        own["remote.storage.enable"] = "true"
        for name in ("retention.ms", "retention.bytes"):
            total = int(own.get(name, WEEK_MS if name.endswith("ms") else -1))
            beyond = st.integers(1, total) if total > 0 else limits
            if name in own:  # else a broker's own total may be less
                own[f"local.{name}"] = str(draw(st.one_of(st.just(-2), beyond)))
    return Topic(own=own)


names = st.sampled_from(["orders", "orders-eu", "a.b", "__canary", "app-repartition", "x_y", "O"])


@settings(deadline=None)
@given(
    found=st.dictionaries(names, topics(), max_size=5),
    hours=st.one_of(st.just("-1"), st.integers(1, 1000).map(str)),
    size=limits.map(str),
)
def test_brokers_do_what_is_written_whatever_they_do(found: dict[str, Topic], hours: str, size: str) -> None:
    """Any retention, on topics or by the brokers' own files: what is written differs in nothing from it."""
    world = World()
    world.topics = found
    for broker in world.brokers.values():
        broker.entries |= {"log.retention.hours": hours, "log.retention.bytes": size}

    for topic, each in compared(world).items():
        assert each.findings == ()
        assert each.unknown is None
        assert not each.is_undeclared or each.is_compacted_only, topic


def test_nothing_is_opted_in_and_no_rule_is_changed() -> None:
    """Only retention is declared: tiering, trim, deletion and who may are as they are by default."""
    world = world_of(
        orders=Topic(own={"retention.ms": "1000"}), far=Topic(own={"remote.storage.enable": "true"})
    )
    policy = read(written(world))

    declared = {key for table in policy.tables for key, _ in table.values}
    assert declared <= {name for name in KEYS if "retention_" in name}
    assert {policy.effective(name).tiering for name in (*world.topics, "tomorrows")} == {False}


def test_tomorrows_topic_is_declared_as_brokers_would_keep_it() -> None:
    """`*` is what a topic gets that sets nothing itself."""
    effective = read(written(world_of(orders=Topic()))).effective("tomorrows")

    assert effective.total_retention_ms == WEEK_MS


def test_topics_that_are_kept_as_by_default_have_no_table_but_a_place_in_a_comment() -> None:
    """A thousand topics of the brokers' default are one table."""
    text = written(world_of(orders=Topic(), users=Topic(), short=Topic(own={"retention.ms": "1000"})))

    assert [table.pattern.text for table in read(text).tables] == ["*", "short"]
    assert "#   orders users" in text


def test_brokers_that_differ_get_no_common_default_and_the_longest_is_declared() -> None:
    """Where two brokers keep a topic for other times, a shorter declaration would make one deletion right."""
    world = world_of(orders=Topic())
    world.brokers[3].entries["log.retention.hours"] = "1000"

    policy = read(written(world))
    assert [table.pattern.text for table in policy.tables] == ["orders"]
    assert policy.effective("orders").total_retention_ms == 1000 * 3_600_000
    [finding] = compared(world)["orders"].findings
    assert finding.kind is Kind.SHORTER


def test_a_local_limit_beyond_the_total_one_is_declared_as_the_total() -> None:
    """The total was made shorter later. A policy cannot say so; `policy check` tells the difference."""
    own = {"remote.storage.enable": "true", "retention.ms": "1000", "local.retention.ms": "5000"}
    world = world_of(far=Topic(own=own))

    assert read(written(world)).effective("far").local_retention_ms == 1000
    [finding] = compared(world)["far"].findings
    assert (finding.kind, finding.key) == (Kind.LONGER, "local_retention_ms")


def test_what_nobody_told_is_not_declared_but_named() -> None:
    """A topic whose settings are not known gets no table."""
    world = world_of(dark=Topic(settings=REFUSED), orders=Topic())
    text = written(world)

    assert read(text).table("dark") is None
    assert "no table was written for these (1):\n#   dark" in text


def test_a_topic_that_went_meanwhile_is_left_out() -> None:
    """Deleted between two questions: nothing is left to declare."""
    gone = Unknown(cause=Cause.NO_SUCH_TOPIC, reason="gone")
    text = written(world_of(brief=Topic(settings=gone), orders=Topic()))

    assert "brief" not in text


def test_where_nothing_may_be_described_the_file_says_so(tmp_path: Path) -> None:
    """No broker tells its settings: there is nothing to declare, and the file is comments alone."""
    world = world_of(dark=Topic(settings=REFUSED))
    for broker in world.brokers.values():
        broker.settings = REFUSED
    text = written(world)

    assert tomllib.loads(text) == {"version": 1}
    assert "is not known" in text


def test_an_empty_cluster_has_a_policy_for_its_first_topic(tmp_path: Path) -> None:
    """Only the brokers' default is there to be declared, and the file is one that is accepted."""
    file = tmp_path / "policy.toml"
    file.write_text(written(World()))

    assert [table.pattern.text for table in read_file(file).tables] == ["*"]


def test_thousands_of_topics_with_tables_of_their_own_are_one_policy() -> None:
    """The file of a large cluster is read back whole."""
    world = World()
    world.topics = {f"t-{number}": Topic(own={"retention.ms": str(number + 1)}) for number in range(3000)}

    assert len(read(written(world)).tables) == 3001
