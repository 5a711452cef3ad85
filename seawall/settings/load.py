"""Reads the settings once: flags over environment over file over defaults, each value with its origin.

Refuses what it does not know, all of it in one message, and never ignores a file that was named. The file's
own place is the flag, else SEAWALL_SETTINGS, else seawall.toml in the working directory if there is one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError
from pydantic_settings import EnvSettingsSource

from seawall.settings import names
from seawall.settings.errors import SettingsRefused, SettingsUnreadable
from seawall.settings.model import ENV_PREFIX, Settings, is_secret
from seawall.settings.names import Origin

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]  # mypy runs on newer ones too

DEFAULT_FILE = Path("seawall.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    settings: Settings
    origins: Mapping[str, Origin]  # of every key that is set somewhere; the others are defaults
    file: Path | None  # the file that was read

    def origin(self, path: str) -> Origin:
        return self.origins.get(path, Origin(source="default"))

    def items(self) -> Iterator[tuple[str, str | SecretStr | None]]:
        """Every setting by its dotted path, set or not."""
        for path in names.known_paths():
            if path != names.PASSTHROUGH:
                table, _, leaf = path.partition(".")
                yield path, _shown(getattr(getattr(self.settings, table), leaf))
        for name, value in sorted(self.settings.kafka.client.items()):
            yield f"{names.PASSTHROUGH}.{name}", value


def _shown(value: Any) -> str | SecretStr | None:
    """A value as it could stand in a variable."""
    if value is None or isinstance(value, (str, SecretStr)):
        return value
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    raw: Any
    origin: Origin


def load(
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, tuple[str, str | None]] | None = None,
) -> Loaded:
    """`flags` maps a key to its flag's name and value, e.g. {"s3.bucket": ("--bucket", "archive")}."""
    environ = os.environ if environ is None else environ
    path = _file_path(file, environ)
    problems = [
        names.unknown_variable(name)
        for name in sorted(environ)
        if name.upper().startswith(ENV_PREFIX) and not names.is_known_variable(name.upper())
    ]
    merged: dict[str, _Value] = {}
    for layer in (_from_file(path), _from_environment(environ), _from_flags(flags or {})):
        problems += [
            names.unknown_key(key, value.origin.name)
            for key, value in layer.items()
            if not names.is_known(key)
        ]
        merged |= layer
    if problems:
        raise SettingsRefused.for_problems(tuple(problems))
    return Loaded(
        settings=_validated(merged),
        origins={key: value.origin for key, value in merged.items()},
        file=path,
    )


def _file_path(named: Path | None, environ: Mapping[str, str]) -> Path | None:
    if named is None and environ.get(names.SETTINGS_FILE):
        named = Path(environ[names.SETTINGS_FILE])
    if named is not None:
        return named
    return DEFAULT_FILE if DEFAULT_FILE.is_file() else None


def _from_file(path: Path | None) -> dict[str, _Value]:
    if path is None:
        return {}
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as failure:
        why = failure.strerror if isinstance(failure, OSError) else str(failure)
        raise SettingsUnreadable(path=str(path), why=why or str(failure)) from failure
    origin = Origin(source="file", name=str(path))
    return {key: _Value(raw=value, origin=origin) for key, value in names.flatten(tree)}


def _from_environment(environ: Mapping[str, str]) -> dict[str, _Value]:
    source = EnvSettingsSource(Settings)
    # By itself it would read os.environ, and whole tables as JSON: only names that we list are looked at.
    source.env_vars = {
        name.lower(): value
        for name, value in environ.items()
        if names.is_known_variable(name.upper()) and name.upper() not in names.ENVIRONMENT_ONLY
    }
    layer = {}
    for path, value in names.flatten(source()):
        leaf = path.removeprefix(f"{names.PASSTHROUGH}.")
        key = path if leaf == path else f"{names.PASSTHROUGH}.{leaf.replace('_', '.')}"
        layer[key] = _Value(raw=value, origin=Origin(source="environment", name=names.variable(key)))
    return layer


def _from_flags(flags: Mapping[str, tuple[str, str | None]]) -> dict[str, _Value]:
    return {
        key: _Value(raw=value, origin=Origin(source="flag", name=flag))
        for key, (flag, value) in flags.items()
        if value is not None
    }


def _validated(merged: Mapping[str, _Value]) -> Settings:
    try:
        return Settings(**names.nest({key: value.raw for key, value in merged.items()}))
    except ValidationError as invalid:
        # Not `from invalid`: pydantic's message shows the value, and the value may be a secret.
        problems = tuple(_refusal(error["loc"], error, merged) for error in invalid.errors())
    raise SettingsRefused.for_problems(tuple(dict.fromkeys(problems)))


def _refusal(location: tuple[int | str, ...], error: Any, merged: Mapping[str, _Value]) -> str:
    # A union adds the name of its member to the location, so the key is the longest part of it that was set.
    parts = [str(part) for part in location]
    paths = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    key = next(path for path in paths if path in merged)
    value = merged[key]
    allowed = error.get("ctx", {}).get("error") or "text"
    is_hidden = is_secret(key) or key in names.NEVER_SHOWN or "@" in str(value.raw)  # user:password@host
    shown = "its value (not shown)" if is_hidden else repr(value.raw)
    return f"`{key}` from {value.origin}: {shown} is not allowed; it must be {allowed}"
