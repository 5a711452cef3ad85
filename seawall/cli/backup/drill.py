"""`seawall backup drill`: restore a sample into a scratch topic, and compare it record by record."""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from backup.plan import AskedBy, Plan, Range
from backup.plan.make import Wish, make_plan
from backup.verify import pieces_of
from rules.events import RestoreTarget
from rules.policy.quantities import read_bytes
from seawall.cli.backup.options import (
    BACKUP,
    StateDir,
    Target,
    TopicId,
    checked_target,
    elsewhere,
    settings_of,
)
from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region
from seawall.settings import Settings

if TYPE_CHECKING:
    from seawall.backup.drill import Drilled
    from seawall.backup.opened import Opened


def drill(
    context: typer.Context,
    target: Target = None,
    max_bytes: Annotated[
        str,
        typer.Option("--max-bytes", metavar="SIZE", help="Of all samples together."),
    ] = "1GiB",
    seed: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Which samples; by default other ones each time.")
    ] = None,
    to_settings: Annotated[
        Path | None,
        typer.Option(
            "--to-settings", metavar="FILE", help="A settings file whose [kafka] takes the scratch topics."
        ),
    ] = None,
    topic_id: TopicId = None,
    state_dir: StateDir = None,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Show that a restore works: restore a sample of each log, read it back and compare.

    A segment of each log, live or under a delete marker, is replayed into a scratch topic as restore-topic
    does it, consumed as any consumer would, and held against the copy: times, keys, values, headers, order.
    The scratch topic is deleted. A signed line of it is kept in the state folder. The log itself, the bucket
    and the topic of metadata are not touched.

    Exits with 0 if every sample is the same; with 1 if one is not; with 4 if nothing was compared.
    """
    checked_target(target)
    try:
        budget = read_bytes(int(max_bytes) if max_bytes.isdigit() else max_bytes)
    except ValueError as refused:
        raise typer.BadParameter(f"must be {refused}", param_hint="--max-bytes") from refused
    settings = settings_of(
        context, bootstrap=bootstrap, bucket=bucket, prefix=prefix, endpoint_url=endpoint_url, region=region
    )
    there = elsewhere(settings, to_settings)
    from seawall.backup.drill import keep
    from seawall.backup.keys import report_key
    from seawall.backup.opened import opened
    from seawall.tier.scrub import state_folder

    with opened(settings) as world:
        folder = state_folder(state_dir, world.cluster_id, os.environ, BACKUP)
        plans = _plans(world, target, topic_id, seed or secrets.token_hex(8), budget)
        done = [_drilled(settings, there, each) for each in plans]
        keep(folder, done, report_key(None, folder))
    for each in done:
        if not as_json:
            typer.echo(_line(each))
    if as_json:
        typer.echo(json.dumps([{**asdict(each), "good": each.is_good} for each in done], indent=2))
    elif not done:
        typer.echo("nothing fits, or nothing is there: no sample was restored")
    if any(each.wrong is not None for each in done):
        raise typer.Exit(FINDINGS)
    raise typer.Exit(CLEAN if any(each.is_good for each in done) else INDETERMINATE)


def _plans(world: Opened, target: str | None, topic_id: str | None, seed: str, budget: int) -> list[Plan]:
    from seawall.backup.drill import chosen
    from seawall.backup.opened import now_ms

    found: list[Plan] = []
    for log in world.logs(target, topic_id):
        catalogue = world.catalogue(log)
        piece = chosen(pieces_of(catalogue), seed, budget)
        if piece is None:
            continue
        budget -= piece.size_bytes
        wish = Wish(
            by=AskedBy.OFFSETS,
            text=f"drill {seed}",
            range=Range(piece.start, piece.end),
            target=RestoreTarget.TOPIC,
        )
        policy = world.policy(catalogue.topic)
        found.append(make_plan(catalogue, wish, policy, now_ms=now_ms(), bucket=world.store.bucket))
    return found


def _drilled(settings: Settings, elsewhere: Settings, planned: Plan) -> Drilled:
    from backup.catalogue.bytes import plan_log
    from seawall.backup.drill import Drilled, compare
    from seawall.backup.drill.kafka import SCRATCH, consumed, delete_topic
    from seawall.backup.opened import now_ms
    from seawall.cli.backup.restore_topic import replayed
    from seawall.connections import kafka_config, segment_store
    from tiering.reader.reader import TieredReader

    body, scratch = planned.body, f"{SCRATCH}{secrets.token_hex(4)}"
    config = kafka_config(elsewhere, client_id="seawall-drill")
    began_s, at_ms = time.monotonic(), now_ms()
    try:
        replayed(settings, elsewhere, planned, scratch, None, {})
        with TieredReader(segment_store(settings)) as reader:
            wanted = reader.records(plan_log(body), body.range.start, body.range.end)
            records, wrong = compare(wanted, consumed(config, scratch, body.log.partition))
    finally:
        delete_topic(config, scratch)
    return Drilled(
        topic=body.topic,
        partition=body.log.partition,
        start=body.range.start,
        end=body.range.end,
        segment_id=body.pieces[0].record.segment_id,
        scratch_topic=scratch,
        records=records,
        wrong=wrong,
        at_ms=at_ms,
        took_ms=round((time.monotonic() - began_s) * 1000),
    )


def _line(each: Drilled) -> str:
    what = f"{each.topic}-{each.partition} [{each.start}, {each.end})"
    if each.wrong is not None:
        return f"WRONG  {what}: {each.wrong}, after {each.records} that were the same"
    return f"same   {what}: {each.records} records, in {each.took_ms / 1000:.1f} s"
