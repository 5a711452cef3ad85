"""What keeps a verb of `seawall tier` from what it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class TopicNotEmpty(SeawallError):
    """{topic} holds {records} records already; nothing was written

    Only a topic that was lost is filled from the bucket. Compare first: leave out --write. If it holds but
    what agents wrote since the loss, stop them, delete the topic, and write.
    """

    exit_code: ClassVar[int] = 47

    topic: str
    records: int
