"""What the scaler asks of the world: a look at a group, and a log that all its replicas share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Condition
from typing import Protocol

from workers.scaler.chain import Link
from workers.scaler.options import Options
from workers.scaler.values import Sample


class Unseen(Exception):
    """A group could not be looked at; the message says why. Nothing is known of it, which is not zero."""


class Unwritten(Exception):
    """A link did not get into the log, as far as anybody knows; the message says why."""


class Groups(Protocol):
    """Looks at consumer groups."""

    def look(self, options: Options) -> Sample:
        """The group and topic of these options now; its `at_s` is the caller's to set. Raises Unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A link as it stands in the log. `age_s`: how long it has stood there when it was read."""

    link: Link
    age_s: float


class SharedLog(Protocol):
    """Links in one order for all who read them, kept for some hours."""

    def append(self, link: Link) -> None:
        """Put it at the end, and return when it is there. Raises Unwritten."""

    def read(self, timeout_s: float) -> Iterator[Written]:
        """What was not read yet, oldest first; may wait so long for the first of it."""

    def is_caught_up(self) -> bool:
        """Whether all that stood there when reading began was read."""


@dataclass(slots=True)
class InMemoryLog:
    """A log of this process alone: for tests, and for whoever wants no state. A fork of it shares its
    links.
    """

    links: list[Link] = field(default_factory=list)
    _at: int = 0
    _changed: Condition = field(default_factory=Condition)

    def append(self, link: Link) -> None:
        with self._changed:
            self.links.append(link)
            self._changed.notify_all()

    def read(self, timeout_s: float) -> Iterator[Written]:
        with self._changed:
            if self._at == len(self.links):
                self._changed.wait(timeout_s)
            unread, self._at = self.links[self._at :], len(self.links)
        for link in unread:
            yield Written(link=link, age_s=0.0)

    def is_caught_up(self) -> bool:
        return True

    def another_reader(self) -> InMemoryLog:
        """The same links from their beginning."""
        return InMemoryLog(links=self.links, _changed=self._changed)
