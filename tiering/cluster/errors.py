"""What keeps an agent from looking at its cluster at all.

What is not known of one topic or partition is no error but a value, `interface.Unknown`: the others' answers
are still good.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class ClusterError(StatedError):
    """{what}"""

    exit_code: ClassVar[int] = 24


@dataclass(kw_only=True, eq=False)
class ClientRefused(ClusterError):
    """librdkafka refuses the client's settings: {why}

    Correct [kafka.client] in the settings; its names are librdkafka's own.
    """

    why: str


@dataclass(kw_only=True, eq=False)
class ClusterUnreachable(ClusterError):
    """no broker of {bootstrap} answers: {why}

    Check kafka.bootstrap, that the brokers are up, and security.protocol in [kafka.client].
    """

    bootstrap: str
    why: str


@dataclass(kw_only=True, eq=False)
class NoLogDirs(ClusterError):
    """none of the log dirs says whose it is: {looked_at}

    A log dir holds meta.properties, which names its cluster and broker. Is the disk mounted, and may this
    process read it?
    """

    looked_at: str


@dataclass(kw_only=True, eq=False)
class LogDirsDisagree(ClusterError):
    """{path} belongs to {found}, and {other_path} to {other}

    The log dirs of one agent are those of one broker. Were they copied, or is one of another broker's disks
    mounted here?
    """

    path: Path
    found: str
    other_path: Path
    other: str


@dataclass(kw_only=True, eq=False)
class SettingUntold(ClusterError):
    """the broker's answer on {resource} has no usable {name}: {found!r}

    A setting that decides what may be deleted is never guessed.
    """

    resource: str
    name: str
    found: str | None
