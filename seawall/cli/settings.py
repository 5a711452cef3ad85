"""`seawall settings`: every setting, its value and where it came from. Secrets are never shown."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import typer
from pydantic import SecretStr
from rich.text import Text

from seawall.cli.console import print_table
from seawall.cli.options import Bootstrap, Bucket, EndpointUrl, Json, Prefix, Region, load_settings
from seawall.jvm.cache import cache_dir
from seawall.settings import Loaded, Origin
from seawall.settings.names import ENVIRONMENT_ONLY, SETTINGS_FILE, variable

Row = tuple[str, str | None, str | None, Origin]  # key, value, variable that sets it, where it came from


def settings(
    context: typer.Context,
    bootstrap: Bootstrap = None,
    bucket: Bucket = None,
    prefix: Prefix = None,
    endpoint_url: EndpointUrl = None,
    region: Region = None,
    as_json: Json = False,
) -> None:
    """Show settings and their origins."""
    loaded = load_settings(
        context,
        bootstrap=bootstrap,
        bucket=bucket,
        prefix=prefix,
        endpoint_url=endpoint_url,
        region=region,
    )
    rows = [*_settings(loaded), *_environment_only(loaded)]
    if as_json:
        typer.echo(json.dumps([_as_json(row) for row in rows], indent=2))
    else:
        print_table(("key", "value", "from"), [_cells(row) for row in rows])


def _settings(loaded: Loaded) -> Iterator[Row]:
    for path, value in loaded.items():
        shown = "(secret, set)" if isinstance(value, SecretStr) else value
        yield path, shown, variable(path), loaded.origin(path)


def _environment_only(loaded: Loaded) -> Iterator[Row]:
    defaults = {"SEAWALL_CACHE_DIR": str(cache_dir()), SETTINGS_FILE: str(loaded.file or "") or None}
    for name in ENVIRONMENT_ONLY:
        value = os.environ.get(name)
        origin = Origin(source="environment", name=name) if value else Origin(source="default")
        yield name, value or defaults.get(name), name, origin


def _as_json(row: Row) -> dict[str, str | None]:
    key, value, name, origin = row
    return {"key": key, "value": value, "variable": name, "from": origin.source, "name": origin.name or None}


def _cells(row: Row) -> tuple[Text, ...]:
    key, value, _, origin = row
    shown = Text(value) if value is not None else Text("not set", style="dim")
    return Text(key), shown, Text(str(origin), style="dim" if origin.source == "default" else "")
