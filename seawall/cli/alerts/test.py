"""`seawall alerts test`: one message that says it is a test, to see that it arrives."""

from __future__ import annotations

from typing import Annotated

import typer

from seawall.cli.alerts.options import StateDir, alert_settings, endpoint_named
from seawall.cli.exit_codes import FINDINGS


def send_test(
    context: typer.Context,
    endpoint: Annotated[
        str | None, typer.Argument(metavar="[ENDPOINT]", help="Its name in the settings; default all.")
    ] = None,
    state_dir: StateDir = None,
) -> None:
    """Send a test, once, and say what came back.

    An endpoint that was disabled, as it said that it is gone, is used again once it takes a test. PagerDuty
    is told that the test is over, too; at an Alertmanager it ends by itself after five minutes.

    Exits with 1 if one did not take it.
    """
    settings = alert_settings(context, state_dir)
    from audit_engine.alerts.endpoints import Format
    from audit_engine.alerts.schedule import Outcome
    from seawall.alerts.delivery import now_ms, opened
    from seawall.alerts.trial import trial

    is_taken = True
    with opened(settings) as alerts:
        targets = alerts.endpoints if endpoint is None else [endpoint_named(alerts, endpoint)]
        for each in targets:
            messages = trial(now_ms(), has_end=each.format is Format.PAGERDUTY)
            verdict = alerts.deliverer.test(each, messages)
            is_ours = verdict.outcome is Outcome.DELIVERED
            is_taken = is_taken and is_ours
            typer.echo(f"{each.name} ({each.place}): {'taken' if is_ours else 'NOT TAKEN'}, {verdict.why}")
        if not targets:
            typer.echo("no endpoint is set: docs/ALERTS.md")
    if not is_taken:
        raise typer.Exit(FINDINGS)


test = send_test  # the verb's name, by which LazyGroup finds it
