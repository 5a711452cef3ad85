"""Which topics this host has replicas of, by the names of their directories.

Owns the reading of names only: thousands cost a few milliseconds. Refuses to take a log dir that cannot be
listed for an empty one: what was in it last is in it still.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tiering.log.directory import KRAFT_METADATA_TOPIC, DirectoryState, partition_name


class HostedTopics:
    """For one thread."""

    def __init__(self, log_dirs: Iterable[Path]) -> None:
        self._found: dict[Path, frozenset[str]] = dict.fromkeys(log_dirs, frozenset())

    def names(self) -> frozenset[str]:
        for path in self._found:
            try:
                listed = [each.name for each in path.iterdir()]
            except OSError:
                continue
            named = (partition_name(each) for each in listed)
            self._found[path] = frozenset(
                each.topic for each in named if each is not None and each.state is DirectoryState.LIVE
            )
        return frozenset[str]().union(*self._found.values()) - {KRAFT_METADATA_TOPIC}
