"""The options that several verbs take, and how they become settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeAlias

import typer

from seawall.cli.invocation import Invocation
from seawall.settings import Loaded, load

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

Bootstrap: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--bootstrap", metavar="HOST:PORT,...", help="Brokers to ask first, instead of kafka.bootstrap."
    ),
]
Bucket: TypeAlias = Annotated[
    str | None, typer.Option("--bucket", metavar="NAME", help="Instead of s3.bucket.")
]
Prefix: TypeAlias = Annotated[
    str | None, typer.Option("--prefix", metavar="KEY", help="Instead of s3.prefix.")
]
EndpointUrl: TypeAlias = Annotated[
    str | None,
    typer.Option("--endpoint-url", metavar="URL", help="Instead of s3.endpoint_url."),
]
Region: TypeAlias = Annotated[
    str | None, typer.Option("--region", metavar="NAME", help="Instead of s3.region.")
]


def load_settings(
    context: typer.Context,
    *,
    bootstrap: str | None = None,
    bucket: str | None = None,
    prefix: str | None = None,
    endpoint_url: str | None = None,
    region: str | None = None,
    more: Mapping[str, tuple[str, str | None]] | None = None,
) -> Loaded:
    """The settings of this run, with the flags on top. `more` is as `load` takes its flags."""
    invocation = context.find_object(Invocation)
    return load(
        file=invocation.settings_file if invocation else None,
        flags={
            "kafka.bootstrap": ("--bootstrap", bootstrap),
            "s3.bucket": ("--bucket", bucket),
            "s3.prefix": ("--prefix", prefix),
            "s3.endpoint_url": ("--endpoint-url", endpoint_url),
            "s3.region": ("--region", region),
            **(more or {}),
        },
    )
