"""What `seawall init` found, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from seawall.cli.console import print_table, stdout_console
from seawall.doctor.finding import Finding, Status
from seawall.init import amounts
from seawall.init.assumed import Prices, Work
from seawall.init.estimate import AuditCost, Estimate, TopicCost
from seawall.init.findings import release_by
from seawall.init.policy_text import Kept
from seawall.init.rates import TopicRate
from seawall.init.report import PERMISSIONS, POLICY, SETTINGS, Report
from seawall.policy.cluster import SeenTopic
from tiering.cluster.interface import Unknown
from tiering.cluster.log_sizes import Quorum

TOPICS_SHOWN = 20  # of a large cluster, the busiest
NAMES_SHOWN = 5
FILES_BESIDE = 2  # seawall.toml and policy.toml


def show(found: Report, bucket: Iterable[Finding], *, folder: Path, prices: Prices, work: Work) -> None:
    _show_cluster(found)
    _show_topics(found)
    _show_dangers(found, bucket)
    _show_gaps(found)
    _show_costs(found.estimate, prices, work)
    _show_next(found, folder)


def _show_cluster(found: Report) -> None:
    seen, own = found.seen, found.own_topics
    partitions = sum(len(held) for held in seen.topics.values())
    sizes = seen.last.size_bytes.values()
    typer.echo(
        f"cluster {seen.cluster_id or '(without an id)'}: {amounts.things(len(seen.brokers), 'broker')}, "
        f"Kafka {' and '.join(found.releases)}, {_controllers(found)}"
    )
    on_disk = amounts.size(sum(sizes)) if sizes else "an unknown amount"
    typer.echo(
        f"{amounts.things(len(own), 'topic')} beside {len(seen.topics) - len(own)} of Kafka's own, "
        f"{amounts.things(partitions, 'partition')}, {on_disk} in all copies"
    )
    if not own:
        typer.echo("there is no topic of your own yet: the files say what brokers do with the first one")


def _controllers(found: Report) -> str:
    quorum = found.seen.quorum
    if isinstance(quorum, Unknown):
        return "who controls it is not known"
    beside = "on the brokers" if quorum.voter_ids & found.seen.broker_ids else "apart from the brokers"
    return f"KRaft with {amounts.things(len(quorum.voter_ids), 'controller')} {beside}"


def _show_topics(found: Report) -> None:
    own = sorted(found.own_topics, key=lambda topic: _weight(found.rates[topic]), reverse=True)
    if not own:
        return
    typer.echo()
    header = (
        "topic",
        "parts",
        "copies",
        "in one copy",
        "a day",
        "by",
        "now/s",
        "back to",
        "kept for",
        "tiering",
    )
    print_table(header, [_topic_row(found, topic) for topic in own[:TOPICS_SHOWN]])
    if len(own) > TOPICS_SHOWN:
        typer.echo(f"and {amounts.things(len(own) - TOPICS_SHOWN, 'topic')} more, which --json has")


def _weight(rate: TopicRate) -> tuple[float, float]:
    return rate.bytes_per_day or 0.0, rate.bytes_now or 0.0


def _topic_row(found: Report, topic: str) -> tuple[Text, ...]:
    rate, held = found.rates[topic], found.seen.topics[topic]
    settings = found.seen.settings[topic]
    copies = max((len(each.replicas) for each in held.values()), default=0)
    cells = (
        topic,
        str(len(held)),
        str(copies),
        amounts.size(rate.bytes_now),
        amounts.size(rate.bytes_per_day),
        rate.basis.value,
        amounts.size(rate.window_bytes_per_s),
        amounts.age(rate.oldest_age_ms) if rate.oldest_age_ms is not None else "-",
        _kept_for(settings),
        _tiering(settings),
    )
    return tuple(Text(cell) for cell in cells)


def _kept_for(settings: SeenTopic | Unknown) -> str:
    if isinstance(settings, Unknown):
        return amounts.UNKNOWN
    ms, size = settings.settings.retention_ms.value, settings.settings.retention_bytes.value
    if "delete" not in settings.settings.cleanup_policy.value:
        return "compacted"
    told = "ever" if ms < 0 else amounts.age(ms)
    return told if size < 0 else f"{told}, {amounts.size(size)}"


def _tiering(settings: SeenTopic | Unknown) -> str:
    if isinstance(settings, Unknown):
        return amounts.UNKNOWN
    return "kip405" if settings.settings.remote_storage_enable.value else "none"


def _show_dangers(found: Report, bucket: Iterable[Finding]) -> None:
    console = stdout_console()
    unsound = [each for each in bucket if each.status not in (Status.OK, Status.SKIPPED)]
    if not found.dangers and not unsound:
        console.print("\nno danger to data was seen", style="green")
        return
    console.print("\nto look at, before anything else: what is a danger to data already", style="bold")
    for danger in found.dangers:
        line = Text(f"  {danger.kind.value}: ", style="bold red").append(danger.why, style="default")
        console.print(line)
        console.print(Text(f"      {_subjects(danger.subjects)}"))
    for each in unsound:
        console.print(Text(f"  {each.subject}: ", style="yellow").append(each.detail, style="default"))


def _subjects(subjects: dict[str, str] | Any) -> str:
    told = [f"{name} ({detail})" if detail else name for name, detail in subjects.items()]
    more = len(told) - NAMES_SHOWN
    return ", ".join(told[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _show_gaps(found: Report) -> None:
    if not found.gaps:
        return
    console = stdout_console()
    console.print("\nnot known: what could not be looked at", style="bold magenta")
    for gap in found.gaps:
        named = _subjects(dict.fromkeys(gap.subjects, ""))
        console.print(Text(f"  {gap.what}: {gap.why}"))
        console.print(Text(f"      {named}"))


def _show_costs(estimate: Estimate, prices: Prices, work: Work) -> None:
    console = stdout_console()
    console.print(
        f"\nwhat it would cost a month, in USD ({prices.OF}, {prices.AS_OF}; --price puts in yours)",
        style="bold",
    )
    if estimate.topics:
        header = ("if tiered", "there now", "kept", "segments/day", "PUTs", "GETs", "storage", "requests")
        rows = [_cost_row(each) for each in estimate.topics[:TOPICS_SHOWN]]
        more = estimate.topics[TOPICS_SHOWN:]
        if more:
            rows.append(_sum_row(f"{len(more)} more", more))
        rows.append(_sum_row("all of these", estimate.topics))
        print_table(header, rows)
    if estimate.not_counted:
        named = _subjects({each.topic: each.why for each in estimate.not_counted})
        typer.echo(f"{amounts.things(len(estimate.not_counted), 'topic')} not counted: {named}")
    typer.echo(f"the audit, observing only: {_audit(estimate.observing)}")
    if estimate.topics:
        typer.echo(f"the audit, with all of these tiered: {_audit(estimate.tiered)}")
    typer.echo(
        f"assumed: rates as today; one copy in S3; what is deleted is kept {work.kept_after_days} days more; "
        f"each object is read once in {work.scrub_days} days; {work.ingests_a_day} ingests a day on "
        f"{work.vcpus} vCPU and {work.memory_gb} GB, {work.ingest_events_per_s:,.0f} events a second "
        "(a guess: measure yours); no traffic out of the region. docs/INIT.md says where each number is from"
    )


def _cost_row(each: TopicCost) -> tuple[Text, ...]:
    return _sum_row(each.topic, [each], grows=each.grows)


def _sum_row(name: str, costs: Iterable[TopicCost], *, grows: bool = False) -> tuple[Text, ...]:
    found = list(costs)
    kept = amounts.size(sum(each.kept_bytes for each in found))
    cells = (
        name,
        amounts.size(sum(each.bytes_now for each in found)),
        f"{kept} in a year, growing" if grows else kept,
        f"{sum(each.segments_per_day for each in found):,.1f}",
        amounts.count(sum(each.puts_per_month for each in found)),
        amounts.count(sum(each.gets_per_month for each in found)),
        f"{sum(each.storage_usd for each in found):,.2f}",
        f"{sum(each.requests_usd for each in found):,.2f}",
    )
    return tuple(Text(cell) for cell in cells)


def _audit(cost: AuditCost) -> str:
    in_kafka = amounts.size(cost.topic_bytes_per_day)
    return (
        f"{amounts.count(cost.events_per_day)} events a day ({in_kafka} in Kafka, in one copy), "
        f"{amounts.count(cost.spark_s_per_day)} Spark seconds a day: {cost.spark_usd:,.2f}"
    )


def _show_next(found: Report, folder: Path) -> None:
    names = f"{SETTINGS}, {POLICY} and {PERMISSIONS}/ ({len(found.files) - FILES_BESIDE} files)"
    at = "" if folder == Path() else f"--settings {folder / SETTINGS} "
    typer.echo(f"\nwritten to {folder}: {names}; nothing else was changed")
    typer.echo("next:")
    for command, what in next_commands(folder):
        typer.echo(f"  {command:<{58 + len(at)}} {what}")


def next_commands(folder: Path) -> tuple[tuple[str, str], ...]:
    seawall = "seawall" if folder == Path() else f"seawall --settings {folder / SETTINGS}"
    return (
        (f"{seawall} doctor", "is all there that Seawall needs"),
        (f"{seawall} policy check {folder / POLICY}", "brokers do what is declared, today"),
        (f"{seawall} agent --observe-only", "beside each broker: evidence from now on"),
    )


def as_tree(
    found: Report, bucket: Iterable[Finding], *, folder: Path, prices: Prices, work: Work
) -> dict[str, Any]:
    seen = found.seen
    return {
        "cluster_id": seen.cluster_id,
        "brokers": [_broker(found, at) for at in range(len(seen.brokers))],
        "controllers": sorted(seen.quorum.voter_ids) if isinstance(seen.quorum, Quorum) else None,
        "observed_s": round(seen.last.at_s - seen.first.at_s, 3),
        "topics": [_topic(found, topic) for topic in seen.topics],
        "dangers": [
            {"kind": each.kind.value, "why": each.why, "subjects": dict(each.subjects)}
            for each in found.dangers
        ],
        "not_known": [asdict(each) for each in found.gaps],
        "bucket": [asdict(each) | {"status": each.status.value} for each in bucket],
        "estimate": _estimate(found.estimate, prices, work),
        "files": [str(folder / name) for name in found.files],
        "next": [command for command, _ in next_commands(folder)],
    }


def _broker(found: Report, at: int) -> dict[str, Any]:
    broker = found.seen.brokers[at]
    release = release_by(broker.features)
    log_dirs = broker.log_dirs
    return {
        "broker_id": broker.address.broker_id,
        "address": f"{broker.address.host}:{broker.address.port}",
        "kafka": None if release is None else str(release),
        "log_dirs": None
        if isinstance(log_dirs, Unknown)
        else [
            {
                "path": each.path,
                "replica_bytes": sum(each.size_bytes.values()),
                "total_bytes": each.total_bytes,
                "usable_bytes": each.usable_bytes,
                "trouble": each.trouble,
            }
            for each in log_dirs
        ],
    }


def _topic(found: Report, topic: str) -> dict[str, Any]:
    held, rate, settings = found.seen.topics[topic], found.rates[topic], found.seen.settings[topic]
    return {
        "topic": topic,
        "partitions": len(held),
        "copies": max((len(each.replicas) for each in held.values()), default=0),
        "bytes_in_all_copies": _all_copies(found, topic),
        "rate": _rate(rate),
        "settings": None
        if isinstance(settings, Unknown)
        else {
            name: {"value": sorted(each.value) if isinstance(each.value, frozenset) else each.value}
            | {"source": each.source.value}
            for name in settings.settings.__dataclass_fields__
            if name != "topic" and (each := getattr(settings.settings, name)) is not None
        },
        "declared": _declared(found, topic),
    }


def _all_copies(found: Report, topic: str) -> int | None:
    sizes = [size for (_, part), size in found.seen.last.size_bytes.items() if part.topic == topic]
    return sum(sizes) if sizes else None


def _rate(rate: TopicRate) -> dict[str, Any]:
    return {
        "by": rate.basis.value,
        "records_per_day": rate.records_per_day,
        "bytes_per_day": rate.bytes_per_day,
        "bytes_in_one_copy": rate.bytes_now,
        "oldest_age_ms": rate.oldest_age_ms,
        "window_bytes_per_s": rate.window_bytes_per_s,
        "partitions_not_known": [each.partition for each in rate.missing],
    }


def _declared(found: Report, topic: str) -> dict[str, Any] | None:
    kept: Kept | None = found.declared.topics.get(topic)
    if kept is None and topic in found.declared.as_default:
        kept = found.declared.default
    if kept is None:
        return None
    return {key: value if isinstance(value, int) else "unlimited" for key, value in kept.values()}


def _estimate(estimate: Estimate, prices: Prices, work: Work) -> dict[str, Any]:
    return {
        "prices": asdict(prices) | {"of": prices.OF, "as_of": prices.AS_OF},
        "assumed": asdict(work),
        "topics": [asdict(each) for each in estimate.topics],
        "not_counted": [asdict(each) for each in estimate.not_counted],
        "storage_usd": estimate.storage_usd,
        "requests_usd": estimate.requests_usd,
        "audit_observing": asdict(estimate.observing),
        "audit_tiered": asdict(estimate.tiered),
    }
