"""What can be wrong with the scaler, and with samples that are to be replayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class ScalerError(SeawallError):
    """the scaler cannot do that"""

    exit_code: ClassVar[int] = 62


@dataclass(kw_only=True, eq=False)
class ScalerNotInstalled(ScalerError):
    """the scaler speaks gRPC, and {missing} is not installed

    Install seawall[scaler].
    """

    missing: str


@dataclass(kw_only=True, eq=False)
class ScalerTopicUnusable(ScalerError):
    """the topic {topic}, which the scaler's replicas share, cannot be {what}: {why}"""

    topic: str
    what: str
    why: str


@dataclass(kw_only=True, eq=False)
class ScalerNotListening(ScalerError):
    """the scaler cannot listen on {address}: {why}"""

    address: str
    why: str


@dataclass(kw_only=True, eq=False)
class SamplesUnreadable(ScalerError):
    """{path} has no samples that can be replayed: {why}"""

    path: str
    why: str


@dataclass(kw_only=True, eq=False)
class OptionsRefused(ScalerError):
    """{why}

    docs/SCALER.md has every key of a scalerMetadata.
    """

    why: str


@dataclass(kw_only=True, eq=False)
class ObjectUnknown(ScalerError):
    """nothing is known of {name} in {topic}

    There is: {known}. What no scaler has looked at for hours is forgotten.
    """

    name: str
    topic: str
    known: str
