"""`seawall authorise topic`: that a topic may be deleted. Deletes none."""

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


def topic(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    principal: Principal,
    change_id: ChangeId,
    reason: Reason,
    lasting: Lasting,
    since: Since = None,
    topic_id: TopicId = None,
    confirm: Confirm = False,
    bootstrap: Bootstrap = None,
    state_dir: StateDir = None,
    as_json: Json = False,
) -> None:
    """Allow that a topic is deleted, for a while.

    It is said of the topic that has the name now, by its id: one that is made anew under the name is
    another, and not allowed to go. The audit takes its deletion within this time as allowed (OPS-01). Nothing
    is deleted.

    Exits with 0 if it is said, or with what would be said; 3 if Kafka does not have it yet; 75 if the policy
    in force does not let it count.
    """
    who = said(principal, change_id, reason, lasting, since)
    settings = load_settings(context, bootstrap=bootstrap).settings
    authorise(
        settings,
        who,
        Operation.DELETE_TOPIC,
        (name, topic_id, None),
        (None, None),
        state_dir=state_dir,
        confirm=confirm,
        as_json=as_json,
    )
