"""`seawall authorise records`: that records of a log may be deleted (DeleteRecords). Deletes none."""

from __future__ import annotations

from typing import Annotated

import typer

from rules.events.operators import Operation
from seawall.cli.authorise.options import (
    ChangeId,
    Confirm,
    Lasting,
    Principal,
    Reason,
    Since,
    StateDir,
    TopicId,
    authorise,
    said,
)
from seawall.cli.options import Bootstrap, Json, load_settings


def records(
    context: typer.Context,
    log: Annotated[
        str,
        typer.Argument(metavar="TOPIC[:PARTITION]", help="The log; without a partition, all of the topic's."),
    ],
    principal: Principal,
    change_id: ChangeId,
    reason: Reason,
    lasting: Lasting,
    end: Annotated[
        int | None, typer.Option("--to", min=1, metavar="OFFSET", help="Up to here, this one not included.")
    ] = None,
    to_end: Annotated[bool, typer.Option("--to-end", help="Instead of --to: all there is.")] = False,
    start: Annotated[int, typer.Option("--from", min=0, metavar="OFFSET", help="From here on.")] = 0,
    since: Since = None,
    topic_id: TopicId = None,
    confirm: Confirm = False,
    bootstrap: Bootstrap = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Allow that records are deleted on request, for a while.

    The audit takes a rise of the log's start over this range, within this time, as allowed (OPS-01,
    START-02); without it, as a loss. Where the policy in force names authorisers, the principal is one of
    them. Nothing is deleted, and nobody is kept from it: who may, Kafka's ACLs say.

    Exits with 0 if it is said, or with what would be said; 3 if Kafka does not have it yet; 75 if the policy
    in force does not let it count.
    """
    if (end is None) is not to_end:
        raise typer.BadParameter("one of --to and --to-end", param_hint="--to")
    if end is not None and end <= start:
        raise typer.BadParameter("the range is empty", param_hint="--to")
    topic, partition = _log(log)
    who = said(principal, change_id, reason, lasting, since)
    settings = load_settings(context, bootstrap=bootstrap).settings
    authorise(
        settings,
        who,
        Operation.DELETE_RECORDS,
        (topic, topic_id, partition),
        (start, end),
        state_dir=state_dir,
        confirm=confirm,
        as_json=as_json,
    )


def _log(text: str) -> tuple[str, int | None]:
    topic, colon, partition = text.partition(":")
    if not topic or (colon and not partition.isdecimal()):
        raise typer.BadParameter("a topic, or a log as TOPIC:PARTITION", param_hint="TOPIC[:PARTITION]")
    return topic, int(partition) if colon else None
