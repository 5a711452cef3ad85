"""What can be wrong with what `seawall read` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class ReadTargetError(SeawallError):
    """{topic} cannot be read"""

    exit_code: ClassVar[int] = 46

    topic: str


@dataclass(kw_only=True, eq=False)
class TopicNotTiered(ReadTargetError):
    """nothing of topic {topic} is in the tier{hint}"""

    hint: str


@dataclass(kw_only=True, eq=False)
class PartitionNotTiered(ReadTargetError):
    """nothing of partition {partition} of {topic} (topic id {topic_id}) is in the tier: it has {tiered}"""

    topic_id: str
    partition: int
    tiered: str


@dataclass(kw_only=True, eq=False)
class TopicAmbiguous(ReadTargetError):
    """topic {topic} was deleted and made again, and the tier has several of that name: {ids}

    Say which: --topic-id ID.
    """

    ids: str
