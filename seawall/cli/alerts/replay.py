"""`seawall alerts replay`: tell an endpoint again what it may not have."""

from __future__ import annotations

from typing import Annotated

import typer

from seawall.cli.alerts.options import ForSeconds, StateDir, alert_settings, endpoint_named
from seawall.cli.exit_codes import PARTIAL


def replay(
    context: typer.Context,
    endpoint: Annotated[str, typer.Argument(metavar="ENDPOINT", help="Its name in the settings.")],
    messages: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MESSAGE]...", help="Ids, by `seawall alerts list`."),
    ] = None,
    is_failed: Annotated[
        bool, typer.Option("--failed", help="All that it refused, or that was given up.")
    ] = False,
    for_s: ForSeconds = None,
    state_dir: StateDir = None,
) -> None:
    """Send messages again, under the ids they had.

    What came after one of the same incident is sent again behind it, so that the last word stays the last.

    Exits with 0 if everything arrived, else 3.
    """
    if bool(messages) == is_failed:
        raise typer.BadParameter("name messages, or say --failed", param_hint="MESSAGE")
    settings = alert_settings(context, state_dir, for_s)
    from audit_engine.alerts.errors import NoSuchMessage
    from seawall.alerts.delivery import now_ms, opened, said

    with opened(settings) as alerts:
        target = endpoint_named(alerts, endpoint)
        ids = list(messages or alerts.record.failed(target.name))
        unknown = next((each for each in ids if not alerts.record.knows(each)), None)
        if unknown is not None:
            raise NoSuchMessage(message_id=unknown, endpoint=target.name)
        count = alerts.record.again(target.name, ids)
        typer.echo(f"{count} messages wait for {target.name} again")
        until_ms = now_ms() + settings.alerts.deliver_s * 1000
        told = alerts.deliverer.deliver(until_ms=until_ms)
        is_whole = said({target.name: told[target.name]}, typer.echo)
    if not is_whole:
        raise typer.Exit(PARTIAL)
