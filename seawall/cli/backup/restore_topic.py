"""`seawall backup restore-topic`: replay a plan's range into a topic, here or on another cluster."""

from __future__ import annotations

import getpass
import hashlib
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from backup.errors import PieceUnreadable
from backup.plan import Plan, Range
from backup.plan.render import lines_of, size
from backup.report import members_of_other
from backup.topic.replay import Job, Replayed
from backup.topic.source import check_plan, check_versions
from rules.events import RestoreTarget
from seawall.cli.backup.options import Rate, Report, SignWith, StateDir, elsewhere, settings_of
from seawall.cli.backup.signed import SignedWith, plan_from
from seawall.cli.exit_codes import CLEAN, PARTIAL
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Prefix, Region
from seawall.settings import Settings


def restore_topic(
    context: typer.Context,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="What `seawall backup plan --out` wrote.")],
    to_topic: Annotated[
        str,
        typer.Option(
            "--to-topic", metavar="TOPIC", help="The topic that is filled; made if it is not there."
        ),
    ],
    to_settings: Annotated[
        Path | None,
        typer.Option(
            "--to-settings", metavar="FILE", help="A settings file whose [kafka] is the target's cluster."
        ),
    ] = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Of a topic that is made; by default as many as the source has.")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--setting", metavar="NAME=VALUE", help="Of a topic that is made; may be repeated."),
    ] = None,
    map_to: Annotated[
        Path | None,
        typer.Option("--map", metavar="FILE", help="Where the offset map goes; by default beside the plan."),
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Do it; else it is only told.")] = False,
    signed_with: SignedWith = None,
    principal: Annotated[
        str | None, typer.Option("--as", metavar="WHO", help="Who answers for it; by default who runs this.")
    ] = None,
    rate: Rate = None,
    report: Report = None,
    sign_with: SignWith = None,
    no_events: Annotated[bool, typer.Option("--no-events", help="Leave no event of it.")] = False,
    state_dir: StateDir = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
) -> None:
    """Replay a plan's range into a topic.

    Times, keys, headers, partition and codec stay; records of aborted transactions are left out, and so are
    markers. Killed anywhere, the same command goes on behind the last transaction that was committed; done
    already, it sends nothing. A topic that is made keeps everything, until you say otherwise.

    Needs the bucket and the target's cluster; the source's may be gone (then say --no-events).

    Exits with 0 if all that was planned is there, 3 if some of what was asked for is lost.
    """
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    planned = plan_from(plan, signed_with)
    is_source = to_settings is None or not no_events  # it is filled, or told
    source_id, source_partitions = _source(settings, planned) if is_source else (None, None)
    check_plan(planned, source_id)
    target = elsewhere(settings, to_settings)
    if not confirm:
        typer.echo("\n".join(lines_of(planned)))
        typer.echo(f"seawall: it would be replayed into {to_topic}: do it with --confirm", err=True)
        raise typer.Exit(CLEAN)
    began_ms = _now_ms()
    given = _made_with(setting or [])
    done, job = replayed(
        settings,
        target,
        planned,
        to_topic,
        partitions or source_partitions,
        given,
        rate=None if rate is None else int(rate),
    )
    path = map_to or plan.with_name(f"{plan.stem}.{to_topic}.map.parquet")
    from backup.topic.parquet import write_map

    body = planned.body
    write_map(path, done.map, source=(body.topic, body.log.partition), target=(to_topic, job.partition))
    who = principal or getpass.getuser()
    if not no_events:
        from seawall.backup.told import tell_restored

        waiting = tell_restored(
            settings, planned, RestoreTarget.TOPIC, brokers=[None], principal=who, state_dir=state_dir
        )
        if waiting:
            typer.echo(f"seawall: Kafka does not have {waiting} events yet; run again to send them", err=True)
    typer.echo("\n".join(_lines(planned, job, done, path)))
    if report is not None:
        from seawall.backup.reporting import write_report

        write_report(report, _members(planned, job, done, who, began_ms, path), sign_with, state_dir)
        typer.echo(f"report: {report}")
    raise typer.Exit(PARTIAL if body.lost_offsets else CLEAN)


def _made_with(given: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise typer.BadParameter(f"{each!r} is not NAME=VALUE", param_hint="--setting")
        found[name.strip()] = value.strip()
    return found


def _source(settings: Settings, planned: Plan) -> tuple[str, int | None]:
    """The cluster of the settings, and how many partitions the plan's topic has there; None: it is gone."""
    from seawall.connections import open_cluster
    from tiering.cluster.interface import DescribedTopic

    cluster, body = open_cluster(settings, client_id="seawall-backup"), planned.body
    found = cluster.describe_topics([body.topic])[body.topic]
    partitions = None
    if isinstance(found, DescribedTopic) and found.topic_id == body.log.topic_id:
        partitions = len(found.partitions)
    return cluster.identity().cluster_id, partitions


def _members(planned: Plan, job: Job, done: Replayed, who: str, began_ms: int, path: Path) -> dict[str, Any]:
    counted = done.counted
    return members_of_other(
        planned,
        who,
        whole=Range(job.start, job.end),
        started_at_ms=began_ms,
        ended_at_ms=_now_ms(),
        was_over=counted.transactions == 0,
        size_bytes=counted.bytes,
        to_topic=job.topic,
        to_topic_id=job.topic_id,
        to_partition=job.partition,
        to_end=done.map.target_end,
        records=counted.records,
        transactions=counted.transactions,
        offset_map={"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
    )


def replayed(
    settings: Settings,
    target: Settings,
    planned: Plan,
    to_topic: str,
    partitions: int | None,
    made_with: dict[str, str],
    *,
    rate: int | None = None,
) -> tuple[Replayed, Job]:
    """The plan carried out, or found carried out. What is not there is said before the target is touched."""
    from backup.catalogue.bytes import plan_log
    from backup.topic.errors import TargetUnfit
    from backup.topic.kafka import KafkaProgress, is_over, ready_topic
    from backup.topic.replay import committed_batches, replay
    from backup.topic.writer import TransactionalWriter
    from seawall.backup.opened import pace_of
    from seawall.cli.backup.bars import stepping_bar
    from seawall.connections import kafka_config, segment_store
    from tiering.reader.reader import TieredReader

    body = planned.body
    store, config = segment_store(settings), kafka_config(target, client_id="seawall-restore")
    try:
        check_versions(planned, store)
    except PieceUnreadable:
        if not is_over(config, to_topic, planned):  # then the source may be gone, and nothing is sent
            raise
    times = [each.record.max_timestamp_ms for each in body.pieces]
    found = ready_topic(
        config,
        to_topic,
        partition=body.log.partition,
        partitions=max(partitions or 1, body.log.partition + 1),
        oldest_ms=min((each for each in times if each >= 0), default=-1),
        size_bytes=sum(each.record.size_bytes for each in body.pieces),
        now_ms=_now_ms(),
        settings=made_with,
    )
    if found.topic_id == body.log.topic_id:
        raise TargetUnfit(topic=to_topic, why="it is the topic that the plan is of: records would be twice")
    job = Job(
        plan_hash=planned.hash,
        topic=to_topic,
        topic_id=found.topic_id,
        partition=body.log.partition,
        start=body.range.start,
        end=body.range.end,
    )
    with (
        TieredReader(store) as reader,
        TransactionalWriter(config, job.transactional_id, to_topic, pause=time.sleep) as writer,
        stepping_bar("replaying", body.range.end - body.range.start) as on_progress,
    ):
        done = replay(
            job,
            committed_batches(reader, plan_log(body), pace_of(rate)),
            writer,
            KafkaProgress(config),
            now_ms=_now_ms,
            pause=time.sleep,
            on_progress=on_progress,
            batch_bytes=found.batch_bytes,
        )
    return done, job


def _lines(planned: Plan, job: Job, done: Replayed, path: Path) -> list[str]:
    body, counted = planned.body, done.counted
    said = f"{body.topic}-{body.log.partition}: [{job.start}, {job.end}) is in {job.topic}-{job.partition}"
    if not counted.transactions:
        lines = [f"{said} already; nothing was sent"]
    else:
        anew = f", {counted.made_anew} of them made anew" if counted.made_anew else ""
        lines = [
            said,
            f"{counted.records} records in {counted.batches} batches{anew}, {size(counted.bytes)}, "
            f"{counted.transactions} transactions",
        ]
    if body.lost_offsets:
        lines.append(f"{body.lost_offsets} offsets of what was asked for are lost")
    return [*lines, f"offset map: {path}"]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
