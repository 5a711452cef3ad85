"""What can be wrong with a path that `seawall log` is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class PathError(SeawallError):
    """{path} cannot be looked at"""

    exit_code: ClassVar[int] = 21

    path: Path


@dataclass(kw_only=True, eq=False)
class NoSuchPath(PathError):
    """{path} does not exist"""


@dataclass(kw_only=True, eq=False)
class PathUnreadable(PathError):
    """{path} cannot be read: {why}

    A broker's files belong to its user: run as that user, or be given read access to its log dirs.
    """

    why: str


@dataclass(kw_only=True, eq=False)
class NotKafkas(PathError):
    """{path} is not a file, partition directory or log dir of Kafka, by its name

    Files: <20 digits>.log, .index, .timeindex, .txnindex, .snapshot, <offset>-<epoch>.checkpoint,
    leader-epoch-checkpoint, *-offset-checkpoint, partition.metadata, meta.properties.
    Directories: <topic>-<partition>, or one that holds such.
    """


@dataclass(kw_only=True, eq=False)
class FileBroken(PathError):
    """{path}: {why}

    Everything before that byte has been printed. `seawall log verify` says what kind of damage it is.
    """

    exit_code: ClassVar[int] = 20

    why: str
