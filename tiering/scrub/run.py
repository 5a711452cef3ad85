"""One run: list what is due to be listed, look at what is due to be looked at, say what it came to.

    1  the logs of the subset, those listed longest ago first: a listing with versions against the records
    2  their segments, those looked at longest ago first, as long as the budget goes: `look`, several at once
    3  whatever came of a look, of either kind: the metadata is read to its end, and only then is it judged
    4  said as events, then noted in the memory: killed in between, it is looked at and said once more

What has begun when the time is up (`pace`) is given up and left for the next run.

Owns this order and the counts. Refuses to write to the bucket or to the topic of metadata: its ports cannot.

Invariant: an object is counted once in a run, and every one that was looked at is an event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TypeVar

from rules.identity import LogId
from rules.words import ScrubDepth
from tiering.errors import StatedError
from tiering.outcome import Failed, Skipped
from tiering.scrub.damage import Checked, Reason
from tiering.scrub.inventory import Difference, Stock, difference, take_stock, wanted_of
from tiering.scrub.judge import settled, unsettled
from tiering.scrub.look import Looked, Looker, size_of
from tiering.scrub.looks import Due, Ended, IsLive, LocalLooks, Looks
from tiering.scrub.pace import GivenUp, Pace
from tiering.scrub.plan import Budget, Refusal, least_recent
from tiering.scrub.ports import Ask, Copy, Ports, Progress
from tiering.scrub.report import Report, Unlisted
from tiering.scrub.say import inventory, scrubbed
from tiering.segments.records import SegmentId, SegmentRecord, SegmentState
from tiering.store.errors import StoreError
from tiering.store.keys import ObjectKind, SegmentKey
from workers.consumer.tasks import Tasks

T = TypeVar("T")

NO_ANSWER_MAX = 5  # segments in a row; then the store is taken to be away
Shared = Callable[[Looks, Pace], Looks]
LISTED = "inventory"  # the memory's word for a log's listing
TICK_S = 0.5  # how often a bar is told, while large segments come
SOON_MS = 0  # noted of what could not be told: before all that was looked at, after what never was


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """A log that was listed in this run, with records up to `metadata_offset`; not so the `other` keys."""

    metadata_offset: int
    other: frozenset[str]


def alone(local: Looks, _: Pace) -> Looks:
    """This process looks by itself."""
    return local


def scrub(
    ports: Ports,
    ask: Ask,
    *,
    on_checked: Callable[[Checked], None] = lambda _: None,
    on_progress: Callable[[Progress], None] = lambda _: None,
    shared: Shared = alone,
) -> Report:
    """Do as much of it as the budget allows. `on_checked` gets every object as it is said.

    `shared` makes of the looks by this process those by others.
    """
    return _Run(ports, ask, on_checked, on_progress, shared).run()


class _Run:
    """One run, by one thread; whoever works for it only looks."""

    def __init__(
        self,
        ports: Ports,
        ask: Ask,
        on_checked: Callable[[Checked], None],
        on_progress: Callable[[Progress], None],
        shared: Shared,
    ) -> None:
        self._ports, self._ask = ports, ask
        self._on_checked, self._on_progress, self._shared = on_checked, on_progress, shared
        self._report = Report()
        self._pace = Pace(ports, ask)
        self._looker = Looker(ports.objects, self._pace.came)
        self._listed: dict[LogId, _Listed] = {}
        self._said: set[str] = set()  # keys with a finding of this run: said once
        self._total_bytes = self._total_segments = 0
        self._to_list = 0
        self._no_answer = 0
        self._looked_at: dict[str, int] = {}
        self._finished: dict[LogId, frozenset[SegmentId]] = {}  # since the metadata was read last

    def run(self) -> Report:
        try:
            self._list()
            self._look()
        finally:
            self._pace.end()
        return self._report

    # Listing

    def _list(self) -> None:
        logs = {self._prefix(log): log for log in self._ports.table.logs()}
        looked_at = self._ports.memory.looked_at(LISTED)
        if self._ask.is_whole:
            self._ports.memory.forget([name for name in looked_at if name not in logs], LISTED)
        due = deque(least_recent((name for name in logs if name in self._ask.subset), looked_at))
        self._to_list = len(due)

        def begin() -> Iterator[Callable[[], Stock | Unlisted | None]]:
            while due and self._pace.may_list_on and self._report.stopped is None:
                log = logs[due.popleft()]
                yield partial(self._taken, log)

        for done in self._finished_of(begin(), self._ask.workers):
            self._settle_stocks(done)
            self._to_list = len(due)
        self._report.logs_left += len(due)

    def _taken(self, log: LogId) -> Stock | Unlisted | None:
        """A worker's: a listing, and a second look at what differs. None: it was given up."""
        table, layout = self._ports.table, self._ports.layout
        read_to = table.last_offset(log)
        records = (table.segment(log, each.segment_id) for each in table.finished(log))
        wanted = wanted_of(each for each in records if each is not None)
        is_known = frozenset(table.known(log)).__contains__
        try:
            versions = self._pace.each_of(self._ports.objects.list_versions(self._prefix(log)))
            stock = take_stock(log, versions, wanted, layout, is_known)
            again = (
                difference(each.key, self._looker.versions(each.key), each.wanted, layout, is_known)
                for each in self._pace.each_of(stock.differences)
            )
            looked_again = replace(stock, differences=tuple(each for each in again if each is not None))
            if not stock.left_out:
                other = frozenset(each.key for each in stock.differences)
                self._listed[log] = _Listed(metadata_offset=read_to, other=other)
            return looked_again
        except StoreError as failed:
            return Unlisted(log, str(failed).splitlines()[0])
        except GivenUp:
            return None

    def _settle_stocks(self, stocks: Sequence[Stock | Unlisted | None]) -> None:
        taken = [each for each in stocks if isinstance(each, Stock)]
        unlisted = [each for each in stocks if isinstance(each, Unlisted)]
        if taken and (unread := self._read_on()) is not None:
            unlisted += [Unlisted(each.log, unread) for each in taken]
            taken = []
        self._report.logs_left += stocks.count(None)
        for each in unlisted:
            self._report.add_unlisted(each)
        for stock in taken:
            self._settle_stock(stock)
        if taken:
            names = [self._prefix(stock.log) for stock in taken]
            self._ports.memory.note(names, LISTED, self._ports.now_ms())

    def _settle_stock(self, stock: Stock) -> None:
        known = frozenset(self._ports.table.known(stock.log))
        standing: list[Difference] = []
        failed: list[Checked] = []
        for each in stock.differences:
            if each.wanted is None:
                if each.segment_id is None or each.segment_id not in known:
                    standing.append(each)
                    self._report.add_unknown(stock.log, each)
                continue
            checked = self._settled(
                Checked(
                    record=each.wanted.record,
                    kind=each.wanted.kind,
                    key=each.key,
                    ref=each.wanted.ref,
                    depth=ScrubDepth.LISTED,
                    outcome=Failed((each.problem,)),
                    looks=2,
                )
            )
            if isinstance(checked.outcome, Failed):
                standing.append(each)
                failed.append(checked)
                self._said.add(checked.key)
        events = [inventory(stock, standing, self._ports), *(scrubbed(each, self._ports) for each in failed)]
        self._ports.sink.emit_many(events)
        self._report.logs_listed += 1
        self._report.objects_listed += stock.object_count
        for checked in failed:
            self._report.add(checked)
            self._on_checked(checked)

    # Looking

    def _look(self) -> None:
        if self._report.stopped is not None:
            return
        due = deque(self._due())
        budget = Budget(max_bytes=self._ask.max_bytes, until_s=self._pace.until_s, clock=self._ports.clock)
        self._total_segments = len(due)
        self._total_bytes = sum(each.size_bytes for each in due)
        if self._ask.max_bytes is not None:
            self._total_bytes = min(self._total_bytes, self._ask.max_bytes)

        def begin() -> Iterator[tuple[Due, SegmentRecord]]:
            while due and self._report.stopped is None:
                each = due[0]
                record = self._now(each.log, each.segment_id)
                if record is None:  # removed since the plan was made
                    due.popleft()
                    continue
                cost = size_of(record) if self._ask.depth is ScrubDepth.DEEP else 0
                refused = budget.admit(cost)
                if refused is Refusal.SPENT:
                    return
                due.popleft()
                if refused is Refusal.TOO_LARGE:
                    self._pass_over(each, record, cost)
                else:
                    yield each, record

        self._look_at(begin(), lambda: budget.is_over)
        self._tell_progress()
        self._report.segments_left += len(due)

    def _look_at(self, begin: Iterator[tuple[Due, SegmentRecord]], is_over: Callable[[], bool]) -> None:
        """As many at once as whoever looks has room for, each judged when it has ended."""
        local = LocalLooks(self._looker, self._pace, depth=self._ask.depth, threads=self._ask.workers)
        with self._shared(local, self._pace) as looks:
            try:
                goes_on = True
                while True:
                    for _ in range(looks.room() if goes_on else 0):
                        if (each := next(begin, None)) is None:
                            goes_on = False
                            break
                        looks.submit(*each, self._is_live(each[0]))
                    if not goes_on and not looks.out:
                        return
                    ended = looks.collect(TICK_S)
                    self._tell_progress()
                    self._settle_looks(ended)
                    self._report.stopped = self._report.stopped or looks.stopped
                    goes_on = goes_on and self._report.stopped is None and not is_over()
            except BaseException:
                self._pace.end()  # leaving it waits for whoever still reads
                raise

    def _due(self) -> list[Due]:
        """Every segment of the subset, in the order in which they are due."""
        table, depth = self._ports.table, self._ask.depth
        found: dict[str, Due] = {}
        there: set[str] = set()
        for log in table.logs():
            for copy in table.finished(log):
                name = self._name(log, copy)
                there.add(name)
                if name in self._ask.subset:
                    size_bytes = copy.size_bytes if depth is ScrubDepth.DEEP else 0
                    found[name] = Due(
                        name=name,
                        log=log,
                        segment_id=copy.segment_id,
                        size_bytes=size_bytes,
                        metadata_offset=copy.metadata_offset,
                    )
        self._looked_at = self._ports.memory.looked_at(depth.value)
        if self._ask.is_whole:
            gone = [name for name in self._looked_at if name not in there]
            self._ports.memory.forget(gone, depth.value)
        return [found[name] for name in least_recent(found, self._looked_at)]

    def _is_live(self, due: Due) -> IsLive:
        """Whether this run's listing had a key of the segment just as its record has it."""
        listed = self._listed.get(due.log)
        if listed is None or due.metadata_offset > listed.metadata_offset:
            return lambda _: False
        return lambda key: key not in listed.other

    def _settle_looks(self, looks: Sequence[Ended]) -> None:
        ended = [(due, looked) for due, looked in looks if looked is not None]
        self._report.segments_left += len(looks) - len(ended)
        if not ended:
            return
        unread = self._read_on()
        said: list[Checked] = []
        for _, looked in ended:
            self._report.read_bytes += looked.read_bytes
            self._report.segments += 1
            if looked.by is not None:
                self._report.by_worker[looked.by] += 1
            for each in looked.checked:
                if each.key not in self._said:
                    said.append(self._settled(each) if unread is None else unsettled(each, unread))
            self._no_answer = self._no_answer + 1 if looked.no_answer else 0
        self._ports.sink.emit_many([scrubbed(each, self._ports) for each in said])
        if unread is None:
            self._note(ended)
        for checked in said:
            self._report.add(checked)
            self._on_checked(checked)
        if self._no_answer >= NO_ANSWER_MAX:
            self._report.stopped = f"the store did not answer for {self._no_answer} segments in a row"

    def _note(self, ended: Sequence[tuple[Due, Looked]]) -> None:
        """What could not be told comes first in the next run, once: no more, or it would keep others back."""
        depth, names = self._ask.depth.value, [due.name for due, _ in ended]
        untold = {due.name for due, looked in ended if looked.is_untold}
        soon = [name for name in untold if self._looked_at.get(name) != SOON_MS]
        self._ports.memory.note([name for name in names if name not in soon], depth, self._ports.now_ms())
        self._ports.memory.note(soon, depth, SOON_MS)

    def _read_on(self) -> str | None:
        """Why the metadata could not be read again; None if it was."""
        self._finished.clear()
        try:
            self._ports.table.read_on()
        except StatedError as failed:
            self._report.stopped = str(failed).splitlines()[0]
            return f"the metadata could not be read after the look: {self._report.stopped}"
        return None

    def _pass_over(self, due: Due, record: SegmentRecord, cost: int) -> None:
        why = f"its segment is {cost} bytes, and the whole budget {self._ask.max_bytes}"
        self._report.segments_too_large += 1
        for kind, ref in record.objects.present():
            checked = Checked(
                record=record,
                kind=ObjectKind(kind),
                key=ref.key,
                ref=ref,
                depth=self._ask.depth,
                outcome=Skipped(why),
                reason=Reason.TOO_LARGE,
                looks=0,
            )
            self._report.add(checked)
            self._on_checked(checked)

    # What both have

    def _settled(self, checked: Checked) -> Checked:
        record, table = checked.record, self._ports.table
        if record.log not in self._finished:
            self._finished[record.log] = frozenset(each.segment_id for each in table.finished(record.log))
        is_followed = record.segment_id in self._finished[record.log]
        return settled(checked, table.segment(record.log, record.segment_id), is_followed=is_followed)

    def _now(self, log: LogId, segment_id: SegmentId) -> SegmentRecord | None:
        """The record, if it is one to look at."""
        record = self._ports.table.segment(log, segment_id)
        is_finished = record is not None and record.state is SegmentState.COPY_FINISHED
        return record if is_finished else None

    def _name(self, log: LogId, copy: Copy) -> str:
        """A segment's, by which it is hashed and remembered: what its objects' keys have in common."""
        key = SegmentKey(log=log, base_offset=copy.base_offset, segment_id=copy.segment_id)
        return self._ports.layout.stem(key)

    def _prefix(self, log: LogId) -> str:
        return self._ports.layout.log_prefix(log)

    def _finished_of(self, begin: Iterator[Callable[[], T]], at_once: int) -> Iterator[list[T]]:
        """What came to its end since, perhaps nothing; as many under way as `at_once`."""
        with Tasks[None, T](threads=self._ask.workers) as tasks:
            try:
                for call in islice(begin, at_once):
                    tasks.submit(None, call)
                while tasks.out:
                    done = [each for _, each in tasks.collect(TICK_S)]
                    self._tell_progress()
                    yield done
                    for call in islice(begin, at_once - tasks.out):
                        tasks.submit(None, call)
            except BaseException:
                self._pace.end()  # leaving it waits for whoever still reads
                raise

    def _tell_progress(self) -> None:
        self._on_progress(
            Progress(
                listing=self._to_list,
                done_bytes=self._pace.came_bytes,
                total_bytes=self._total_bytes,
                segments=self._report.segments,
                total_segments=self._total_segments,
            )
        )
