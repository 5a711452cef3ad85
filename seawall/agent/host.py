"""Where the broker's log dirs are, and where the agent keeps its own state.

Owns the finding: from the settings, or from the broker's own properties file. Refuses to guess: a log dir
that is not named is not looked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from seawall.agent.errors import NoLogDirsNamed, PropertiesUnreadable
from seawall.settings.model import AgentSettings
from tiering.cluster.interface import BrokerIdentity


def log_dirs(settings: AgentSettings) -> tuple[Path, ...]:
    """The log dirs to look after; Kafka's own default is not assumed, it is in /tmp."""
    if settings.log_dirs:
        return tuple(Path(each) for each in settings.log_dirs)
    if settings.server_properties is None:
        raise NoLogDirsNamed
    path = Path(settings.server_properties)
    try:
        properties = dict(_properties(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as failed:
        raise PropertiesUnreadable(
            path=path, why=getattr(failed, "strerror", None) or str(failed)
        ) from failed
    named = _named(properties)
    if not named:
        raise PropertiesUnreadable(path=path, why="neither log.dirs nor log.dir is set in it")
    return named


def state_folder(settings: AgentSettings, broker: BrokerIdentity, environ: Mapping[str, str]) -> Path:
    """The agent's own folder, one for each broker."""
    if settings.state_dir is not None:
        return Path(settings.state_dir)
    home = Path(environ.get("HOME", "/"))
    base = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    return base / "seawall" / f"{broker.cluster_id}-{broker.broker_id}"


def _named(properties: Mapping[str, str]) -> tuple[Path, ...]:
    """As the broker reads them: log.dirs before log.dir, and the metadata log's folder if it is elsewhere."""
    data = properties.get("log.dirs") or properties.get("log.dir") or ""
    names = [name.strip() for name in data.split(",") if name.strip()]
    metadata = properties.get("metadata.log.dir", "").strip()
    if names and metadata and metadata not in names:
        names.append(metadata)
    return tuple(Path(name) for name in names)


def _properties(text: str) -> Iterator[tuple[str, str]]:
    """The lines of a properties file as Kafka's own examples have them: key=value, # and ! for comments."""
    continued = ""
    for line in text.splitlines():
        stripped = continued + line.strip()
        continued = ""
        if stripped.startswith(("#", "!")):
            continue
        if stripped.endswith("\\"):
            continued = stripped[:-1]
            continue
        key, separator, value = stripped.partition("=")
        if separator:
            yield key.strip(), os.path.expandvars(value.strip())


__all__ = ["log_dirs", "state_folder"]
