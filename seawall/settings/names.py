"""The names of settings: `s3.bucket` in the file is SEAWALL_S3__BUCKET in the environment. No values here.

Under `kafka.client` every name is librdkafka's own, so any is a valid name here; in a variable its dots are
underscores (SEAWALL_KAFKA__CLIENT__SASL_PASSWORD is sasl.password): no name of librdkafka's has one itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from seawall.settings.model import ENV_DELIMITER, ENV_PREFIX, Settings

PASSTHROUGH = "kafka.client"
SETTINGS_FILE = "SEAWALL_SETTINGS"
# Read before any settings are, so they have no place in the file.
ENVIRONMENT_ONLY: Mapping[str, str] = {
    SETTINGS_FILE: "the settings file, if it is not ./seawall.toml",
    "SEAWALL_CACHE_DIR": "the folder for jars",
    "SEAWALL_IVY_SETTINGS": "an Ivy settings file, to fetch the jars from a mirror",
    "SEAWALL_TEST_CORPUS": "a ready corpus of log dirs, for Seawall's own tests",
    "SEAWALL_FUZZ_SEED": "the seed of the fuzzer in Seawall's own tests",
}
NEVER_SHOWN = ("alerts.endpoints",)  # somebody may have put a secret where its name belongs
NEAREST_RATIO = 0.6  # below it, a suggestion is more puzzling than none


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value came from: `name` is the flag, the variable or the file, empty for a default."""

    source: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.source} {self.name}".rstrip()


def known_paths(model: type[BaseModel] = Settings, under: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from known_paths(kind, f"{under}{name}.")
        else:
            yield under + name


def flatten(tree: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf by its dotted path; a table that is empty is no leaf."""
    for name, value in tree.items():
        path = f"{under}{name}"
        if isinstance(value, Mapping):
            yield from flatten(value, f"{path}.")
        else:
            yield path, value


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse, with the names under the passthrough left whole. Only for known paths."""
    tree: dict[str, Any] = {}
    for path, value in flat.items():
        *tables, leaf = _parts(path)
        table = tree
        for name in tables:
            table = table.setdefault(name, {})
        table[leaf] = value
    return tree


def is_known(path: str) -> bool:
    return path in _SETTABLE or (path.startswith(f"{PASSTHROUGH}.") and path not in _SET_ELSEWHERE)


def variable(path: str) -> str:
    return ENV_PREFIX + ENV_DELIMITER.join(_parts(path)).replace(".", "_").upper()


def is_known_variable(name: str) -> bool:
    passthrough = variable(PASSTHROUGH) + ENV_DELIMITER
    is_passthrough = name.startswith(passthrough) and len(name) > len(passthrough)
    return is_passthrough or name in ENVIRONMENT_ONLY or name in _VARIABLES


def unknown_key(path: str, where: str) -> str:
    if path in _TABLES:
        return f"`{path}` in {where} must be a table: [{path}]"
    if path in _SET_ELSEWHERE:
        return f"unknown key `{path}` in {where}; the brokers are `kafka.bootstrap`"
    near = _nearest(path, [*_SETTABLE, *ENVIRONMENT_ONLY])
    if near in ENVIRONMENT_ONLY:
        return f"unknown key `{path}` in {where}; it is set by the environment variable {near}"
    return f"unknown key `{path}` in {where}{_hint(near and f'`{near}`')}"


def unknown_variable(name: str) -> str:
    inside = (variable for variable in _VARIABLES if variable.startswith(name.rstrip("_") + ENV_DELIMITER))
    near = next(inside, None) or _nearest(name, [*_VARIABLES, *ENVIRONMENT_ONLY])
    return f"unknown environment variable {name}{_hint(near)}"


def _hint(name: str | None) -> str:
    return f"; did you mean {name}?" if name else "; `seawall settings` lists those there are"


def _nearest(name: str, known: list[str]) -> str | None:
    """By the whole name or by its last part alone: `bucket` at the top of the file means `s3.bucket`."""

    def likeness(candidate: str) -> float:
        whole = _ratio(_plain(name), _plain(candidate))
        last = _ratio(_last(name), _last(candidate))
        # The whole name weighs a little more, so that `kafka.client` is not drawn to any other `client`.
        return max(whole, last * 0.95)

    def in_its_table(candidate: str) -> float:
        """Where the table is right, its own keys are meant rather than another's that is as like."""
        return 0.1 * (_plain(name).rpartition(".")[0] == _plain(candidate).rpartition(".")[0])

    best = max(known, key=lambda candidate: likeness(candidate) + in_its_table(candidate))
    return best if likeness(best) >= NEAREST_RATIO else None


def _ratio(left: str, right: str) -> float:
    return difflib.SequenceMatcher(None, left, right).ratio()


def _plain(name: str) -> str:
    return name.lower().removeprefix(ENV_PREFIX.lower()).replace(ENV_DELIMITER, ".")


def _last(name: str) -> str:
    return _plain(name).rpartition(".")[2]


def _parts(path: str) -> list[str]:
    if path.startswith(f"{PASSTHROUGH}."):
        return [*PASSTHROUGH.split("."), path.removeprefix(f"{PASSTHROUGH}.")]
    return path.split(".")


# librdkafka's names for what has a setting of its own.
_SET_ELSEWHERE = (f"{PASSTHROUGH}.bootstrap.servers", f"{PASSTHROUGH}.metadata.broker.list")
_SETTABLE = tuple(path for path in known_paths() if path != PASSTHROUGH)
_VARIABLES = tuple(variable(path) for path in _SETTABLE)
_TABLES = {path[:dot] for path in known_paths() for dot in range(len(path)) if path[dot] == "."} | {
    PASSTHROUGH
}
