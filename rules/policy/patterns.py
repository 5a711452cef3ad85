"""Which topics a table of the policy speaks for, and which of two tables is the more specific.

A pattern is a topic's name in which each `*` stands for any run of characters, none included. There is no
other wildcard: `?` and `[...]` are no part of a topic's name and are refused.

*More specific* means: every topic that the one matches, the other matches too, and not the reverse. Length
or order in the file count for nothing. Two patterns can overlap without either being more specific
(`orders-*` and `*-eu`); where such two disagree about a topic, the policy is refused (`cells` finds them).

Names that begin with `__` are internal, and only a pattern that begins with `__` itself matches them: `*`
is what people write for *my topics*, as in a shell it leaves out the files that begin with a dot.
"""

from __future__ import annotations

import string
from dataclasses import dataclass

INTERNAL = "__"
NAME_LETTERS = string.ascii_lowercase + string.ascii_uppercase + string.digits + "-._"
NAME_MAX = 249  # org.apache.kafka.common.internals.Topic
# In place of a `*`, when one pattern is matched against another: no name has it.
_ANYTHING = "\0"


@dataclass(frozen=True, slots=True)
class Pattern:
    """Made by `read_pattern`, or from text that is known to be right."""

    text: str

    @property
    def is_glob(self) -> bool:
        return "*" in self.text

    @property
    def is_internal(self) -> bool:
        return self.text.startswith(INTERNAL)

    def matches(self, topic: str) -> bool:
        if topic.startswith(INTERNAL) and not self.is_internal:
            return False
        return _fits(self.text, topic)

    def covers(self, other: Pattern) -> bool:
        """Whether every topic that `other` matches is matched by this one.

        A `*` of the other can be anything, so only a `*` of this one can stand for it.
        """
        if self.is_internal is not other.is_internal:
            return False
        return _fits(self.text, other.text.replace("*", _ANYTHING))

    def __str__(self) -> str:
        return self.text


def _fits(glob: str, name: str) -> bool:
    """Takes each run between two `*` where it first occurs: time is linear, where an expression's is not."""
    head, *between = glob.split("*")
    if not between:
        return glob == name
    tail = between.pop()
    if not name.startswith(head) or not name.endswith(tail) or len(name) < len(head) + len(tail):
        return False
    position, end = len(head), len(name) - len(tail)
    for run in between:
        found = name.find(run, position, end)
        if found < 0:
            return False
        position = found + len(run)
    return True


def read_pattern(text: str) -> Pattern:
    """ValueError says what is wrong."""
    strangers = sorted(set(text) - set(NAME_LETTERS) - {"*"})
    if strangers:
        raise ValueError(
            f"{strangers[0]!r} is in no topic's name (a-z A-Z 0-9 . _ -), and * is the only wildcard"
        )
    if "**" in text:
        raise ValueError("two * in a row say no more than one")
    if not text or text in (".", "..") or len(text) > NAME_MAX:
        raise ValueError(f"a topic's name has 1 to {NAME_MAX} characters, and is not . or ..")
    return Pattern(text)
