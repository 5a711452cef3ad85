"""Every way in which a topic can fall under the patterns of a policy, each with an example of such a name.

A *cell* is a set of patterns that some topic's name matches, while it matches none of the others. There are
infinitely many names and few cells, so that what holds for each cell holds for every topic there will ever
be: that no two tables disagree, that no values contradict each other. It is why a policy that was accepted
cannot turn out ambiguous when somebody creates a topic.

Owns the search: names are spelled letter by letter, all globs followed at once, and a spelling that leads
where another has led is dropped. Refuses a set of globs that needs more than STATES_MAX steps; it takes a
dozen globs with a `*` at both ends to get there. Names without a wildcard need no search, and may be many.

Invariant: a topic that matches any pattern matches exactly those of one of the cells that are given.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from rules.policy.patterns import INTERNAL, NAME_LETTERS, Pattern

STATES_MAX = 10_000

# Where in its own text a glob can stand after what was spelled so far.
_Places: TypeAlias = frozenset[int]
# Of every glob that can still match, by its number.
_State: TypeAlias = tuple[tuple[int, _Places], ...]


class Cell(NamedTuple):
    matching: tuple[Pattern, ...]
    example: str


class TooIntricate(Exception):
    """The globs overlap in more ways than can be looked through."""


def cells(patterns: Iterable[Pattern]) -> Iterator[Cell]:
    """Each cell once, with a shortest name of it; the cell of no pattern at all is left out."""
    every = sorted(set(patterns), key=lambda pattern: pattern.text)
    globs = tuple(pattern for pattern in every if pattern.is_glob)
    for own in every:
        if not own.is_glob:
            yield Cell((*(glob for glob in globs if glob.matches(own.text)), own), own.text)
    for is_internal in (False, True):
        yield from _cells(tuple(glob for glob in globs if glob.is_internal is is_internal), is_internal)


def _cells(globs: tuple[Pattern, ...], is_internal: bool) -> Iterator[Cell]:
    start: _State = tuple((number, _settled(glob.text, {0})) for number, glob in enumerate(globs))
    waiting = deque([("", start)])
    reached: set[tuple[str, _State]] = set()
    given: set[tuple[int, ...]] = set()
    while waiting:
        name, state = waiting.popleft()
        matching = tuple(number for number, places in state if len(globs[number].text) in places)
        is_name = name.startswith(INTERNAL) if is_internal else name != ""
        if matching and is_name and matching not in given:
            given.add(matching)
            yield Cell(tuple(globs[number] for number in matching), name)
        for letter in _letters(globs, state):
            spelled = name + letter
            if not _is_reachable(spelled, is_internal):
                continue
            there = _followed(globs, state, letter)
            # What follows on a single `_` depends on it, as two of them begin an internal name.
            key = (spelled if len(spelled) < len(INTERNAL) else "", there)
            if there and key not in reached:
                if len(reached) == STATES_MAX:
                    raise TooIntricate
                reached.add(key)
                waiting.append((spelled, there))


def _is_reachable(spelled: str, is_internal: bool) -> bool:
    if is_internal:
        return spelled[: len(INTERNAL)] == INTERNAL[: len(spelled)]
    return not spelled.startswith(INTERNAL)


def _letters(globs: tuple[Pattern, ...], state: _State) -> Iterator[str]:
    """Each letter that some glob waits for, and one that none does: it stands for all the rest."""
    wanted = {
        globs[number].text[place]
        for number, places in state
        for place in places
        if place < len(globs[number].text) and globs[number].text[place] != "*"
    }
    stranger = next((letter for letter in NAME_LETTERS if letter not in wanted), None)
    if stranger is not None:
        yield stranger
    yield from sorted(wanted)


def _followed(globs: tuple[Pattern, ...], state: _State, letter: str) -> _State:
    there = ((number, _stepped(globs[number].text, places, letter)) for number, places in state)
    return tuple((number, places) for number, places in there if places)


def _stepped(glob: str, places: _Places, letter: str) -> _Places:
    after: set[int] = set()
    for place in places:
        if place < len(glob) and glob[place] == "*":
            after.add(place)
        elif place < len(glob) and glob[place] == letter:
            after.add(place + 1)
    return _settled(glob, after)


def _settled(glob: str, places: set[int]) -> _Places:
    """With the places that a `*` for nothing leads to, and without those that a later `*` makes needless.

    Whatever matches from before a `*` that was reached matches from that `*`, too: dropping it keeps the
    number of states in proportion to the glob's length.
    """
    settled = places | {place + 1 for place in places if place < len(glob) and glob[place] == "*"}
    last = max((place for place in settled if place < len(glob) and glob[place] == "*"), default=0)
    return frozenset(place for place in settled if place >= last)
