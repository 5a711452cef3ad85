"""What keeps a scrub from being shared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class SharedScrubError(StatedError):
    """the scrub cannot be shared"""

    exit_code: ClassVar[int] = 79


@dataclass(kw_only=True, eq=False)
class ScrubTopicSilent(SharedScrubError):
    """{topic} cannot be {what}: {why}

    It is one of three topics that a shared scrub has, and a scrub without --workers kafka has none.
    """

    topic: str
    what: str
    why: str


@dataclass(kw_only=True, eq=False)
class ScrubTopicUnfit(SharedScrubError):
    """{topic} is not as a shared scrub needs it: {why}

    docs/FORMATS.md says what its settings must be. Nothing in it is kept: delete it, and it is made anew.
    """

    topic: str
    why: str


@dataclass(kw_only=True, eq=False)
class NoScrubWorker(StatedError):
    """no scrub worker has been heard of in {topic} for {waited_s:.0f} s; nothing was looked at

    Start `seawall tier scrub-worker` on one host or more, with this cluster and this bucket, or wait longer
    (--wait). Without --workers kafka this process reads the segments itself.
    """

    exit_code: ClassVar[int] = 80

    topic: str
    waited_s: float
