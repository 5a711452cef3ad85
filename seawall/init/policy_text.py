"""policy.toml as a cluster is run today: what brokers keep is what is declared, and nothing is opted in.

`*` declares what brokers do with a topic that sets nothing itself; each topic that is kept for another time
has a table of its own. `seawall policy check` then finds no difference, until the one or the other changes.

Owns the file's words. Refuses to declare what nobody told: such topics are listed, as are compacted ones,
to which retention does not apply.

Invariant: what is written is a policy that can be followed, and declares only retention.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rules.policy import KEYS, UNLIMITED, Limit, Policy, read_policy
from rules.policy.declared import VERSION, Table
from rules.policy.patterns import INTERNAL, Pattern
from rules.policy.quantities import at_most
from rules.policy.values import Value
from seawall.init import amounts
from seawall.init.rates import TopicRate
from seawall.init.seen import Seen
from seawall.policy.cluster import SeenTopic
from seawall.policy.toml_text import as_toml
from tiering.cluster.errors import SettingUntold
from tiering.cluster.interface import Cause, TopicSettings, Unknown
from tiering.cluster.settings import Source, defaults_of
from tiering.cluster.topics import is_internal

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]  # mypy runs on newer ones too

EVERYTHING = "*"
NAMES_A_LINE = 6
NAMES_AT_MOST = 120  # in one comment

_WHO = {
    Source.TOPIC: "set on the topic",
    Source.BROKER: "set on a broker while it ran",
    Source.ALL_BROKERS: "the cluster's default",
    Source.STATIC: "of server.properties",
    Source.DEFAULT: "Kafka's default",
    Source.OTHER: "of another source",
}
_HEAD = """\
# What is declared for {where}. Written by `seawall init` from what its brokers do: this changes nothing.
# Seawall deletes nothing that is not declared to be deletable here, and says where brokers differ from it.
# docs/POLICY.md has every key. The most specific table wins, for each key.
#
#   seawall policy check policy.toml                                    is it what brokers do?
#   seawall policy apply policy.toml --principal WHO --change-id WHY    a plan; with --confirm it is declared
"""
_OPT_IN = """\

# Nothing below is on. Each is opted into by itself, in a table for the topics that it is meant for, and
# `seawall policy apply` without --confirm shows for which topics it would be, before anything is.
#
# [topics."orders-*"]
# tiering = true                  # copy closed segments to S3
# local_retention_ms = "1d"       # what brokers are to keep on disk, once all of it is in S3
# trim = true                     # delete from disk what is in S3, verified, and older than that
# total_retention_ms = "90d"      # how long it is kept at all
# remote_deletion = true          # delete from S3 what is older; it can be put back for backup_window_days
# authorisers = ["team-orders"]   # who may change these lines, and allow deletions
"""


@dataclass(frozen=True, slots=True)
class Kept:
    """What brokers keep, in the policy's words. Local: on disk, beside their own remote tier."""

    total_ms: Limit
    total_bytes: Limit
    local_ms: Limit | None = None
    local_bytes: Limit | None = None

    def values(self) -> tuple[tuple[str, Value], ...]:
        """In the order of KEYS. A local limit that is the total one follows from it."""
        found: dict[str, Limit | None] = {
            "total_retention_ms": self.total_ms,
            "total_retention_bytes": self.total_bytes,
            "local_retention_ms": self.local_ms if self.local_ms != self.total_ms else None,
            "local_retention_bytes": self.local_bytes if self.local_bytes != self.total_bytes else None,
        }
        return tuple((key, value) for key in KEYS if (value := found.get(key)) is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The policy, in parts. `others` are topics without a table of their own, by why."""

    default: Kept | None
    topics: Mapping[str, Kept]
    disagreeing: frozenset[str]  # brokers differ: the longest is declared
    as_default: tuple[str, ...]
    compacted: tuple[str, ...]
    unknown: Mapping[str, str]

    @property
    def policy(self) -> Policy:
        """What the file says. An empty one, if no broker told anything."""
        tables = [_table(EVERYTHING, self.default)] if self.default is not None else []
        return Policy(tables=(*tables, *(_table(name, kept) for name, kept in self.topics.items())))


def declare(seen: Seen) -> Declared:
    """What brokers do, as a policy."""
    default = _default(seen)
    topics: dict[str, Kept] = {}
    disagreeing: set[str] = set()
    as_default: list[str] = []
    compacted: list[str] = []
    unknown: dict[str, str] = {}
    for name, found in sorted(seen.settings.items()):
        if is_internal(name):
            continue
        if isinstance(found, Unknown):
            if found.cause is not Cause.NO_SUCH_TOPIC:
                unknown[name] = found.reason
            continue
        if "delete" not in found.settings.cleanup_policy.value:
            compacted.append(name)
            continue
        kept, agreed = _kept(found)
        if not agreed:
            disagreeing.add(name)
        if (
            agreed
            and kept.values() == (default.values() if default else ())
            and not name.startswith(INTERNAL)
        ):
            as_default.append(name)
        else:
            topics[name] = kept
    return Declared(
        default=default,
        topics=topics,
        disagreeing=frozenset(disagreeing),
        as_default=tuple(as_default),
        compacted=tuple(compacted),
        unknown=unknown,
    )


def policy_text(declared: Declared, seen: Seen, rates: Mapping[str, TopicRate], *, where: str) -> str:
    """The file. Raises PolicyRefused if it could not be followed, which is a defect here."""
    lines = [_HEAD.format(where=where), f"version = {VERSION}", ""]
    if declared.default is not None:
        lines += ["# What brokers do with a topic that sets nothing itself, as they will with tomorrow's."]
        lines += [*_listed("These do", declared.as_default)]
        lines += [_body(_table(EVERYTHING, declared.default))]
    else:
        lines += [
            "# What brokers do with a topic that sets nothing itself is not known, or not the same on all."
        ]
    lines += [*_listed("Compacted: retention does not apply to these", declared.compacted)]
    lines += [*_listed("Not known, so that no table was written for these", tuple(declared.unknown))]
    lines += [_OPT_IN]
    for name, kept in declared.topics.items():
        lines += [*_about(name, seen, rates.get(name), disagrees=name in declared.disagreeing)]
        lines += [_body(_table(name, kept))]
    text = "\n".join(lines).rstrip("\n") + "\n"
    if declared.policy.tables:
        assert read_policy(tomllib.loads(text)).content_hash == declared.policy.content_hash
    return text


def _default(seen: Seen) -> Kept | None:
    """The same on all brokers, or not known."""
    found: set[Kept] = set()
    for broker in seen.brokers:
        if isinstance(broker.settings, Unknown):
            return None
        try:
            found.add(_of(defaults_of(broker.settings)))
        except SettingUntold:
            return None
    return found.pop() if len(found) == 1 else None


def _kept(found: SeenTopic) -> tuple[Kept, bool]:
    """What all brokers keep, or the longest of it; and whether they agree."""
    each = {_of(settings) for settings in found.by_broker.values()}
    if len(each) == 1:
        return next(iter(each)), True
    longest = next(iter(each))
    for other in each:
        longest = Kept(
            _longer(longest.total_ms, other.total_ms),
            _longer(longest.total_bytes, other.total_bytes),
            None
            if longest.local_ms is None or other.local_ms is None
            else _longer(longest.local_ms, other.local_ms),
            None
            if longest.local_bytes is None or other.local_bytes is None
            else _longer(longest.local_bytes, other.local_bytes),
        )
    return longest, False


def _of(settings: TopicSettings) -> Kept:
    total_ms, total_bytes = _limit(settings.retention_ms.value), _limit(settings.retention_bytes.value)
    if not settings.remote_storage_enable.value:
        return Kept(total_ms, total_bytes)
    # Kafka takes a local limit beyond the total one if the total shrinks later. What is gone is not on disk.
    local_ms, local_bytes = _limit(settings.local_ms), _limit(settings.local_bytes)
    return Kept(
        total_ms,
        total_bytes,
        local_ms if at_most(local_ms, total_ms) else total_ms,
        local_bytes if at_most(local_bytes, total_bytes) else total_bytes,
    )


def _limit(value: int) -> Limit:
    """Kafka takes 0, to delete what is closed at once. The least that can be declared is 1."""
    return UNLIMITED if value < 0 else max(value, 1)


def _longer(left: Limit, right: Limit) -> Limit:
    return right if at_most(left, right) else left


def _table(pattern: str, kept: Kept) -> Table:
    return Table(pattern=Pattern(pattern), values=kept.values())


def _body(table: Table) -> str:
    """The table as the policy's own writer has it, without what stands above."""
    return as_toml(Policy(tables=(table,))).partition("\n\n")[2]


def _about(name: str, seen: Seen, rate: TopicRate | None, *, disagrees: bool) -> Iterator[str]:
    held = seen.topics[name]
    copies = max((len(each.replicas) for each in held.values()), default=0)
    shape = f"{amounts.things(len(held), 'partition')}, {amounts.things(copies, 'copy', 'copies')}"
    if rate is not None:
        shape += f"; {amounts.size(rate.bytes_now)} in one copy"
        if rate.oldest_age_ms is not None:
            shape += f", back to {amounts.age(rate.oldest_age_ms)} ago"
        if rate.bytes_per_day is not None:
            shape += f"; {amounts.size(rate.bytes_per_day)} a day"
    yield f"# {shape}"
    found = seen.settings[name]
    if isinstance(found, SeenTopic):
        settings = found.settings
        yield (
            f"# retention.ms is {_WHO[settings.retention_ms.source]}, "
            f"retention.bytes {_WHO[settings.retention_bytes.source]}"
        )
        if settings.remote_storage_enable.value:
            yield "# Kafka's own tiered storage is on: Seawall audits this topic, and never tiers or trims it"
        if settings.is_compacted:
            yield "# it is compacted, too: Seawall audits this topic, and never tiers or trims it"
    if disagrees:
        yield "# brokers differ, and this is the longest that one of them keeps: see `seawall policy check`"


def _listed(what: str, names: tuple[str, ...]) -> Iterator[str]:
    if not names:
        return
    yield f"# {what} ({len(names)}):"
    shown = names[:NAMES_AT_MOST]
    for start in range(0, len(shown), NAMES_A_LINE):
        yield f"#   {' '.join(shown[start : start + NAMES_A_LINE])}"
    if len(names) > len(shown):
        yield f"#   and {len(names) - len(shown)} more"
