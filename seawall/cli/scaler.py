"""`seawall scaler`: serve KEDA, explain what was said of an object, replay samples that were kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from seawall.cli.console import print_table, stdout_console
from seawall.cli.options import Bootstrap, Json, load_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from workers.scaler.options import Options
    from workers.scaler.replay import Judged

Svg = Annotated[
    Path | None, typer.Option("--svg", metavar="FILE", help="Draw the window into this file as well.")
]
SetKeys = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="A key of the scalerMetadata; repeat it. docs/SCALER.md has them."
    ),
]

scaler = typer.Typer(
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    short_help="Tell KEDA how many consumers a group should have.",
)


@scaler.callback()
def serve(
    context: typer.Context,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="gRPC. Port 0: any that is free.")
    ] = None,
    metrics_listen: Annotated[
        str | None, typer.Option("--metrics-listen", metavar="HOST:PORT", help="/metrics, /healthz, /readyz.")
    ] = None,
    address_file: Annotated[
        Path | None,
        typer.Option("--address-file", metavar="FILE", help="Write the gRPC address and the other one here."),
    ] = None,
    bootstrap: Bootstrap = None,
) -> None:
    """Tell KEDA how many consumers a group should have: a scaler that ignores blips.

    Without a verb: serve KEDA's externalscaler.proto until SIGTERM. A ScaledObject says in its scalerMetadata
    which group and topic, and when a lag is persistent. Any number of replicas may serve: they agree by a
    topic that they share.

    Examples:

    seawall scaler --listen 0.0.0.0:9318

    seawall scaler explain shop/orders

    seawall scaler replay samples.jsonl --set lagThreshold=500 --set sustainSeconds=120
    """
    if context.invoked_subcommand is not None:
        return
    loaded = load_settings(
        context,
        bootstrap=bootstrap,
        more={
            "scaler.listen": ("--listen", listen),
            "scaler.metrics_listen": ("--metrics-listen", metrics_listen),
        },
    )
    from seawall.agent import logs
    from seawall.scaler.run import World, run

    logs.set_up()

    def listening(address: str, metrics: str) -> None:
        if address_file is not None:
            partial = address_file.with_name(address_file.name + ".partial")
            partial.write_text(f"{address}\n{metrics}\n")
            partial.replace(address_file)

    run(loaded.settings, World(log=logs.logger(), on_listening=listening))


@scaler.command()
def explain(
    context: typer.Context,
    object_name: Annotated[str, typer.Argument(metavar="OBJECT", help="NAMESPACE/NAME of the ScaledObject.")],
    svg: Svg = None,
    as_json: Json = False,
    bootstrap: Bootstrap = None,
) -> None:
    """Show what was said of an object in the last hours, by which samples, and draw its window.

    It reads the topic that the scalers share, and asks none of them. With --json each line is a link as it
    stands there, which `seawall scaler replay` reads.
    """
    loaded = load_settings(context, bootstrap=bootstrap)
    from seawall.scaler.explain import links_of
    from workers.scaler.codec import to_json
    from workers.scaler.replay import Judged

    links = links_of(loaded.settings, object_name)
    if as_json:
        for link in links:
            stdout_console().print(json.dumps(to_json(link)))
    judged = [Judged(sample=link.sample, word=link.word) for link in links]
    _show(judged, links[-1].options, title=object_name, svg=svg, as_json=as_json)


@scaler.command()
def replay(
    samples: Annotated[Path, typer.Argument(metavar="SAMPLES", help="Samples, a JSON value a line.")],
    set_keys: SetKeys = None,
    svg: Svg = None,
    as_json: Json = False,
) -> None:
    """Judge samples that were kept, under any options, and show every verdict. Asks no cluster."""
    from seawall.scaler.errors import SamplesUnreadable
    from workers.scaler.codec import NotReadable, to_json
    from workers.scaler.replay import read_samples
    from workers.scaler.replay import replay as judge

    try:
        with samples.open(encoding="utf-8") as lines:
            kept = read_samples(lines)
    except (OSError, UnicodeDecodeError, NotReadable) as refused:
        raise SamplesUnreadable(path=str(samples), why=str(refused)) from refused
    if not kept.samples:
        raise SamplesUnreadable(path=str(samples), why="it is empty")
    options = _options(kept.metadata, set_keys)
    judged = judge(options, kept.samples)
    if as_json:
        for each in judged:
            stdout_console().print(json.dumps(to_json(each)))
    _show(judged, options, title=samples.name, svg=svg, as_json=as_json)


def _options(metadata: object, set_keys: list[str] | None) -> Options:
    from seawall.scaler.errors import OptionsRefused
    from workers.scaler.options import OptionRefused
    from workers.scaler.replay import Kept, options_of

    told = {}
    for each in set_keys or ():
        key, equals, value = each.partition("=")
        if not equals:
            raise typer.BadParameter(f"{each!r} is not KEY=VALUE", param_hint="--set")
        told[key] = value
    assert isinstance(metadata, dict)
    try:
        return options_of(Kept(metadata=metadata, samples=()), told)
    except OptionRefused as refused:
        raise OptionsRefused(why=str(refused)) from refused


def _show(judged: Sequence[Judged], options: Options, *, title: str, svg: Path | None, as_json: bool) -> None:
    from workers.scaler.picture import as_svg, in_columns

    if svg is not None:
        svg.write_text(as_svg(judged, options, title=title), encoding="utf-8")
    if as_json:
        return
    began_s = judged[0].sample.at_s
    rows = []
    for each in judged:
        word = each.word
        numbers = f"{word.replicas:g}" if word.is_known else "-"
        said = "; ".join(f"{reason.rule}: {reason.text}" for reason in word.reasons)
        rows.append(
            tuple(
                Text(cell)
                for cell in (
                    f"{each.sample.at_s - began_s:.1f}",
                    str(word.lag_records) if word.is_known else "-",
                    word.verdict.value,
                    word.move.value if word.is_known else "-",
                    numbers,
                    str(each.sample.members),
                    "; ".join((said, *(f"ALERT {alert}" for alert in word.alerts))),
                )
            )
        )
    print_table(("seconds", "lag", "verdict", "move", "replicas", "members", "why"), rows)
    for line in ("", *in_columns(judged, options)):
        stdout_console().print(line)
