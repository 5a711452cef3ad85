"""What happens in a package's driver before Seawall does: settings, secrets by reference, and exit codes.

A job that ends with anything but 0 is a failed one to spark-submit and EMR Serverless, and is tried again.
What a run *found* is no failure: those codes become 0, a line says so, and `seawall audit status` still ends
with them. Every other code stays.

Owns these words. Refuses a secret in the arguments, which every console shows.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seawall.cli.exit_codes import CLEAN, FINDINGS, INDETERMINATE, PARTIAL
from seawall.settings.model import is_secret
from seawall.settings.names import SETTINGS_FILE, is_known, variable
from seawall.spark_package.errors import EntryRefused, SecretUnreadable

# What the verb says, by the codes that docs/EXIT_CODES.md gives them, and no more.
TOLD: dict[tuple[str, ...], frozenset[int]] = {
    ("audit", "ingest"): frozenset({FINDINGS}),
    ("audit", "run"): frozenset({FINDINGS, PARTIAL, INDETERMINATE}),
    ("audit", "status"): frozenset({FINDINGS, PARTIAL}),  # people know of those, not of 4
}

# How `aws:` and s3:// are read: `s3`, or a test's own.
Fetch = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    settings: str | None
    variables: dict[str, str]
    secrets: dict[str, str]
    verb: tuple[str, ...]


def main(arguments: Sequence[str]) -> int:
    """The driver's exit code."""
    from tiering.errors import StatedError

    try:
        asked = asked_for(arguments)
        prepare(asked, os.environ)
    except StatedError as refused:
        sys.stderr.write(f"seawall: {refused}\n")
        return refused.exit_code
    return settled(asked.verb, _run(asked.verb))


def settled(verb: Sequence[str], code: int) -> int:
    """What spark-submit is told of it."""
    if code not in TOLD.get(tuple(verb[:2]), ()):
        return code
    said = f"`seawall {' '.join(verb[:2])}` ended with {code}: what it found, and no failure of the job"
    sys.stderr.write(f"seawall: {said}; `seawall audit status` has it\n")
    return CLEAN


def asked_for(arguments: Sequence[str]) -> Asked:
    """The options in front of the verb."""
    settings, variables, secrets = None, {}, {}
    left = list(arguments)
    while left and left[0].startswith("--"):
        option, _, value = left.pop(0).partition("=")
        if option not in ("--settings", "--set", "--secret"):
            raise EntryRefused(why=f"{option} is not an option of entry.py")
        if not value:
            if not left:
                raise EntryRefused(why=f"{option} needs a value")
            value = left.pop(0)
        if option == "--settings":
            settings = value
            continue
        name, is_said, said = value.partition("=")
        if not is_said or not name:
            raise EntryRefused(why=f"{option} takes NAME=VALUE")
        if option == "--secret":
            secrets[name] = _reference(name, said)
        else:
            variables[_variable(name)] = said
    if not left:
        raise EntryRefused(why="there is no verb, such as `audit run`")
    return Asked(settings=settings, variables=variables, secrets=secrets, verb=tuple(left))


def _variable(key: str) -> str:
    if not is_known(key):
        raise EntryRefused(why=f"there is no setting {key}; `seawall settings` lists those there are")
    if is_secret(key):
        raise EntryRefused(why=f"{key} is a secret: --secret {variable(key)}=REFERENCE")
    return variable(key)


def _reference(name: str, text: str) -> str:
    if not name.isidentifier() or not text.startswith(("env:", "file:", "aws:")) or text.endswith(":"):
        # The text itself may be a secret in the wrong place.
        raise EntryRefused(why=f"what --secret gives for {name!r} (not shown) is no reference")
    return text


def prepare(asked: Asked, environ: MutableMapping[str, str], *, aws: Fetch | None = None) -> None:
    """Put all that was said where Seawall looks for it: into the environment of this process alone."""
    environ.update(asked.variables)
    for name, reference in asked.secrets.items():
        environ[name] = _secret(name, reference, environ, aws)
    if asked.settings is not None:
        environ[SETTINGS_FILE] = _settings_file(asked.settings)


def _secret(name: str, reference: str, environ: MutableMapping[str, str], aws: Fetch | None) -> str:
    kind, _, place = reference.partition(":")
    if kind == "env":
        if place not in environ:
            raise SecretUnreadable(variable=name, why=f"there is no variable {place}")
        return environ[place]
    if kind == "file":
        try:
            return Path(place).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as failure:
            raise SecretUnreadable(variable=name, why=f"{place}: {type(failure).__name__}") from None
    ident, _, member = place.partition("#")
    text = (aws or _of_aws)(ident)
    if not member:
        return text
    try:
        return str(json.loads(text)[member])
    except (ValueError, KeyError, TypeError):
        raise SecretUnreadable(variable=name, why=f"{ident} has no member {member!r} of JSON") from None


def _of_aws(ident: str) -> str:
    from seawall.spark_package.s3 import secret  # boto3, which few packages need this early

    return secret(ident)


def _settings_file(place: str) -> str:
    if not place.startswith("s3://"):
        return place
    from seawall.spark_package.s3 import text_of

    descriptor, path = tempfile.mkstemp(prefix="seawall-", suffix=".toml")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text_of(place))
    return path


def _run(verb: Sequence[str]) -> int:
    from seawall.cli import main as seawall

    sys.argv = ["seawall", *verb]
    try:
        seawall()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return CLEAN
