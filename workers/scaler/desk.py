"""The objects that somebody asks about, and the last word on each. Called by many threads.

Owns one sampler a group, each with a thread of its own, and the thread that reads the log. Whoever asks gets
the last word that stands there and never waits for Kafka. A word that is too old, or that nothing is known
by, is no word: `Unknown`, and why.

Invariant: what is said of an object was read from the log. All replicas of the scaler say the same, or
nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from threading import Condition, Event, Thread
from types import TracebackType

from workers.scaler.chain import Chain, Link, object_key
from workers.scaler.options import OptionRefused, Options, read_options
from workers.scaler.ports import Groups, SharedLog, Unseen, Unwritten, Written
from workers.scaler.values import Evaluation, GroupKey, Move

OBJECTS_MAX = 1_000
FORGET_S = 1_800.0  # KEDA has no call to say that an object is gone; it asks every 30 s, or what is set there
CHAINS_MAX = 10_000
READ_S = 0.2  # so soon a stop is heard
TURN_SHARE = 0.1  # of an interval: a replica comes so much later than another, so that one of them is first

_log = logging.getLogger(__name__)


class TooMany(Exception):
    """More objects than one scaler sees to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Nothing can be said of an object, and why."""

    why: str


@dataclass(slots=True)
class _Object:
    options: Options
    asked_s: float
    trouble: str = ""


@dataclass(slots=True)
class Counts:
    """Since the beginning."""

    samples: int = 0
    unseen: int = 0
    unwritten: int = 0
    overtaken: int = 0  # links for a place that another had taken
    moves: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """What a desk gets from outside. `monotonic_s` and `wall_s` are clocks; `by` names this process."""

    groups: Mapping[str, Groups]  # by the names of clusters
    shared: SharedLog
    monotonic_s: Callable[[], float]
    wall_s: Callable[[], float]
    chance: Callable[[], float]  # from 0 to 1
    by: str


class Desk:
    """Works from its making until it is closed."""

    def __init__(self, around: Around) -> None:
        self._around = around
        self._changed = Condition()
        self._objects: dict[str, _Object] = {}
        self._chains: dict[str, Chain] = {}
        self._groups: dict[GroupKey, dict[str, _Object]] = {}
        self._samplers: dict[GroupKey, Thread] = {}
        self._listeners: list[Callable[[Link], None]] = []
        self._stop = Event()
        self.counts = Counts()
        self._reader = Thread(target=self._read, name="scaler-read", daemon=True)
        self._reader.start()

    def __enter__(self) -> Desk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stop.set()
        with self._changed:
            self._changed.notify_all()
            threads = [*self._samplers.values(), self._reader]
        for thread in threads:
            thread.join()

    def on_change(self, listener: Callable[[Link], None]) -> None:
        """Call it after each new word, from a thread of ours. It must not wait."""
        self._listeners.append(listener)

    @property
    def is_ready(self) -> bool:
        return self._around.shared.is_caught_up()

    def opened(self, namespace: str, name: str, metadata: Mapping[str, str]) -> tuple[str, Options]:
        """Begin to see to an object, or go on. Raises OptionRefused, TooMany."""
        options = read_options(metadata)
        if options.cluster not in self._around.groups:
            raise OptionRefused(
                "cluster", f"there is no such cluster; there are {', '.join(sorted(self._around.groups))}"
            )
        key = object_key(namespace, name, options)
        now_s = self._around.monotonic_s()
        with self._changed:
            if key in self._objects:
                self._objects[key].asked_s = now_s
                return key, options
            if len(self._objects) >= OBJECTS_MAX:
                raise TooMany(f"{OBJECTS_MAX} objects are seen to already")
            self._objects[key] = _Object(options=options, asked_s=now_s)
            self._groups.setdefault(options.key, {})[key] = self._objects[key]
            if options.key not in self._samplers and not self._stop.is_set():
                thread = Thread(target=self._sample, args=(options.key,), name="scaler-sample", daemon=True)
                self._samplers[options.key] = thread
                thread.start()
        return key, options

    def word(self, key: str) -> Evaluation | Unknown:
        """The last word on an object that was opened."""
        with self._changed:
            asked, chain = self._objects.get(key), self._chains.get(key)
            if asked is None:
                return Unknown(why="nobody has asked for it for long")
            if not self.is_ready:
                return Unknown(why="what was known before is being read")
            if chain is None or chain.last is None:
                return Unknown(why=asked.trouble or "there is no sample yet")
            since_s = self._around.monotonic_s() - chain.read_at_s
            if since_s > asked.options.stale_s:
                return Unknown(
                    why=f"the last sample is {since_s:.0f} s old: {asked.trouble or 'no newer one'}"
                )
            word = chain.last.word
        if not word.is_known:
            return Unknown(why="; ".join(reason.text for reason in word.reasons))
        return word

    def words(self) -> dict[str, tuple[Options, Evaluation | Unknown]]:
        """Of every object."""
        with self._changed:
            known = {key: each.options for key, each in self._objects.items()}
        return {key: (options, self.word(key)) for key, options in known.items()}

    def _read(self) -> None:
        while not self._stop.is_set():
            try:
                for each in self._around.shared.read(READ_S):
                    self._take(each)
            except Exception:  # noqa: BLE001 the thread's edge: without it nothing would be known
                _log.exception("reading the shared log begins anew")
                self._stop.wait(READ_S)

    def _take(self, each: Written) -> None:
        key = each.link.object_key
        with self._changed:
            if key not in self._chains and len(self._chains) >= CHAINS_MAX:
                oldest = min(self._chains, key=lambda name: self._chains[name].read_at_s)
                del self._chains[oldest]
            chain = self._chains.setdefault(key, Chain())
            if not chain.take(each.link, now_s=self._around.monotonic_s(), age_s=each.age_s):
                self.counts.overtaken += 1
                return
            if each.link.word.move is not Move.HOLD:
                self.counts.moves += 1
            self._changed.notify_all()
        for listener in self._listeners:
            listener(each.link)

    def _sample(self, key: GroupKey) -> None:
        """The thread of one group: it looks when the first of its objects is due, and a little later than
        that, so that of several replicas one is first and the others find its link."""
        late = 0.0
        while not self._stop.is_set():
            with self._changed:
                now_s = self._around.monotonic_s()
                mine = self._kept(key, now_s)
                if not mine:
                    del self._samplers[key], self._groups[key]
                    return
                due = {name: self._due_s(name, each, now_s, late) for name, each in mine.items()}
            left_s = min(due.values())
            if left_s > 0 or not self.is_ready:
                self._stop.wait(min(max(left_s, 0.01), READ_S) if self.is_ready else READ_S)
                continue
            self._turn(key, {name: each for name, each in mine.items() if due[name] <= 0})
            late = self._around.chance() * TURN_SHARE

    def _kept(self, key: GroupKey, now_s: float) -> dict[str, _Object]:
        """The objects of a group that somebody still asks about."""
        mine = self._groups[key]
        for name in [n for n, each in mine.items() if now_s - each.asked_s > FORGET_S]:
            del mine[name], self._objects[name]
        return dict(mine)

    def _due_s(self, name: str, each: _Object, now_s: float, late: float) -> float:
        chain = self._chains.get(name)
        since_s = None if chain is None else chain.since_s(now_s)
        return 0.0 if since_s is None else each.options.sampling_interval_s * (1 + late) - since_s

    def _turn(self, key: GroupKey, due: Mapping[str, _Object]) -> None:
        """One look for all that are due, and a link for each."""
        around = self._around
        first = next(iter(due.values())).options
        try:
            seen = around.groups[key.cluster].look(first)
        except Unseen as trouble:
            self.counts.unseen += 1
            return self._troubled(due, str(trouble))
        except Exception as trouble:  # noqa: BLE001 the thread's edge: the group would never be looked at again
            self.counts.unseen += 1
            _log.exception("looking at %s", key)
            return self._troubled(due, repr(trouble))
        self.counts.samples += 1
        for name, each in due.items():
            with self._changed:
                chain = copy(self._chains.get(name, Chain()))
            link = chain.next(
                name, each.options, seen, by=around.by, now_s=around.monotonic_s(), wall_s=around.wall_s()
            )
            try:
                around.shared.append(link)
                each.trouble = ""
            except Unwritten as trouble:
                self.counts.unwritten += 1
                self._troubled({name: each}, str(trouble))
                continue
            self._await(name, link.place)
        return None

    def _troubled(self, due: Mapping[str, _Object], why: str) -> None:
        """Try again in an interval: a cluster that is away is not asked all the time."""
        for each in due.values():
            each.trouble = why
        _log.warning("no sample of %s: %s", ", ".join(due), why)
        self._stop.wait(min(each.options.sampling_interval_s for each in due.values()))

    def _await(self, name: str, place: int) -> None:
        """Until the log has been read as far as this place."""
        deadline_s = self._around.monotonic_s() + 10.0

        def is_there() -> bool:
            chain = self._chains.get(name)
            return self._stop.is_set() or (
                chain is not None and chain.last is not None and chain.last.place >= place
            )

        with self._changed:
            while not is_there() and self._around.monotonic_s() < deadline_s:
                self._changed.wait(READ_S)
