"""A scrub dealt out to workers in one thread: real consumers on the shipped test kit, killed at will."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from zlib import crc32

import pytest

from rules.events import Scrubbed, ScrubDepth, ScrubOutcome
from tests.tiering.scrub.kit import NOW_MS, Kit, flip
from tests.tiering.store.memory import MemoryStore
from tiering.outcome import Verified
from tiering.scrub.look import Looker, Objects, size_of
from tiering.scrub.looks import Due, Ended, IsLive, Looks
from tiering.scrub.pace import Pace
from tiering.scrub.ports import Ask
from tiering.scrub.report import Report
from tiering.scrub.shared import looks
from tiering.scrub.shared.board import ANSWER_S, QUIET_S, Board
from tiering.scrub.shared.handler import Looking
from tiering.scrub.shared.looks import SharedLooks, await_workers
from tiering.scrub.shared.words import Answer, Hail, Seen, encode_word
from tiering.segments.records import SegmentId, SegmentRecord
from tiering.store.keys import ObjectKind
from tiering.store.patient import patient
from tiering.store.throttle import unlimited
from workers.consumer.outcomes import Outcome
from workers.consumer.records import Partition, Record
from workers.testing.world import Member, World

PARTITIONS = [Partition("tasks", number) for number in range(4)]
VERIFIED, FAILED, INCONCLUSIVE = ScrubOutcome.VERIFIED, ScrubOutcome.FAILED, ScrubOutcome.INCONCLUSIVE


class Here:
    """The coordinator's own second look, at once and in its own thread."""

    stopped: str | None = None

    def __init__(self, kit: Kit) -> None:
        self._looker = Looker(kit.objects or kit.store, lambda _: None)
        self._ended: list[Ended] = []

    @property
    def out(self) -> int:
        return len(self._ended)

    def room(self) -> int:
        return 8

    def submit(self, due: Due, record: SegmentRecord, is_live: IsLive) -> None:
        self._ended.append(Ended(due, self._looker.look(record, ScrubDepth.DEEP, is_live)))

    def collect(self, timeout_s: float) -> list[Ended]:
        found, self._ended = self._ended, []
        return found

    def __enter__(self) -> Here:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


@dataclass
class Scene:
    """Topics in memory, and workers on them. `meanwhile` happens whenever the coordinator waits."""

    kit: Kit
    workers: int = 2
    bucket: str = "tier"
    objects: Objects | None = None
    rate: int | None = None
    meanwhile: Callable[[Scene], None] = lambda _: None
    answers: list[bytes] = field(default_factory=list)
    handled: int = 0

    def __post_init__(self) -> None:
        self.world = World(PARTITIONS)
        self.members: list[Member] = [self.world.join(at_once=2) for _ in range(self.workers)]
        self.world.turns(3)
        self.looking = Looking(
            self.objects or self.kit.store,
            bucket=self.bucket,
            worker="worker",
            say=lambda answer: self.answers.append(encode_word(answer)),
            limit=unlimited(),
            clock=self.kit.hands.clock,
            sleep=self.kit.hands.sleep,
            now_ms=lambda: NOW_MS,
            is_ending=lambda: False,
        )

    def scrub(self, ask: Ask | None = None) -> Report:
        self.board = Board(run="run", rate=self.rate)
        for member in self.members:
            self.board.hailed(Hail(worker=member.name, threads=2), self.world.clock())

        def shared(local: Looks, pace: Pace) -> SharedLooks:
            self.looks = SharedLooks(
                self,
                self.board,
                Here(self.kit),
                pace,
                depth=ScrubDepth.DEEP,
                bucket="tier",
                clock=self.world.clock,
                now_ms=lambda: NOW_MS,
            )
            return self.looks

        return self.kit.scrub(ask, shared=shared)

    # The topics

    def send(self, segment_id: SegmentId, run: str, value: bytes) -> None:
        partition = PARTITIONS[crc32(segment_id.encode()) % len(PARTITIONS)]
        self.world.broker.produce(partition, segment_id.encode(), value)

    def refused(self) -> Sequence[tuple[SegmentId, str]]:
        return ()

    def receive(self, timeout_s: float) -> Sequence[bytes]:
        self.world.turns(2)
        self.meanwhile(self)
        self.world.clock.advance(0.05)
        for member in self.world.members:
            self.answers.append(encode_word(Hail(worker=member.name, threads=2)))
        found, self.answers = self.answers, []
        if not found:
            self.world.clock.advance(timeout_s)
        return found

    # The workers

    def works(self, most: int = 1000) -> None:
        """They do what they hold, each task at most once a call."""
        for member in list(self.world.members):
            for _ in range(len(member.executor.held)):
                if most <= 0:
                    return
                most -= 1
                self.finish(member, self.looking)

    def finish(self, member: Member, handler: Callable[[Record], Outcome]) -> None:
        self.handled += 1
        member.executor.finish(0, handler(member.executor.held[0].record))


def outcomes(kit: Kit) -> dict[str, tuple[ScrubOutcome, str | None]]:
    return {each.object_key: (each.scrub_outcome, each.problem) for each in kit.scrubbed}


def damaged(kit: Kit) -> None:
    """Eight segments: one rotten, one whose record is wrong, one with an `.aux` that is none."""
    for number in range(8):
        kit.copy(
            stored=(lambda content: flip(content, 80)) if number == 2 else bytes,
            aux=(lambda _: b"garbled") if number == 5 else bytes,
        )


def test_what_many_workers_find_is_what_one_process_finds(kit: Kit) -> None:
    """Object by object, verified and failed, by the same events; nothing is handled twice in a calm run."""
    damaged(kit)
    alone = kit.scrub()
    said = outcomes(kit)

    scene = Scene(kit, meanwhile=Scene.works)
    report = scene.scrub()

    assert outcomes(kit) == said
    assert report.counts == alone.counts
    assert report.by_worker == {"worker": 8}
    assert scene.handled == 8
    scene.world.check()


def test_a_worker_that_is_killed_half_way_costs_nothing(kit: Kit) -> None:
    """What it held goes to the other one: nothing is lost, nothing unclear, and the result is the same."""
    damaged(kit)
    kit.scrub()
    said = outcomes(kit)

    def once(scene: Scene) -> None:
        if scene.handled < 3:
            scene.works(1)
        elif len(scene.world.members) == 2:
            held = [each for each in scene.world.members if each.executor.held]
            assert held
            scene.world.crash(held[0])
        else:
            scene.works()

    scene = Scene(kit, meanwhile=once)
    report = scene.scrub()

    assert outcomes(kit) == said
    assert report.counts[INCONCLUSIVE] == 0
    scene.world.quiesce(scene.looking)
    scene.world.check_end()


def test_a_task_that_comes_to_two_workers_counts_once(kit: Kit) -> None:
    """One was taken for dead, and was not: both answer, and one object is one event."""
    for _ in range(6):
        kit.copy()
    expelled: list[str] = []

    def twice(scene: Scene) -> None:
        if not expelled and scene.members[0].executor.held:
            expelled.append(scene.members[0].name)
            held = [each.record for each in scene.members[0].executor.held]
            for record in held:
                scene.looking(record)
            scene.world.expel(scene.members[0])
        else:
            scene.works()

    scene = Scene(kit, meanwhile=twice)
    report = scene.scrub()

    assert expelled
    assert report.counts == {VERIFIED: 18}
    assert len(kit.scrubbed) == len({each.object_key for each in kit.scrubbed}) == 18


def test_a_worker_that_never_answers_leaves_what_it_held_unclear(kit: Kit) -> None:
    """It lives and says so; after its time each object is unclear, not missing and not right, and is first in
    the next run."""
    kit.copy()

    def waits(scene: Scene) -> None:
        scene.world.clock.advance(ANSWER_S / 10)

    report = Scene(kit, meanwhile=waits).scrub()

    assert report.counts == {INCONCLUSIVE: 3}
    assert {each.problem for each in kit.scrubbed} == {"unanswered"}
    assert "no worker answered for it in time" in kit.scrubbed[0].detail
    assert kit.scrub().counts == {VERIFIED: 3}


def test_when_the_last_worker_is_gone_the_run_ends_and_says_so(kit: Kit) -> None:
    """What was out is unclear, the rest is left: no run waits for ever, none is called right."""
    for _ in range(12):
        kit.copy()

    def dies(scene: Scene) -> None:
        scene.works()
        if scene.handled >= 4:
            for member in list(scene.world.members):
                scene.world.crash(member)

    report = Scene(kit, workers=1, meanwhile=dies).scrub()

    assert report.stopped == f"no worker has been heard of for {QUIET_S:.0f} s"
    assert report.is_untold
    assert report.counts[FAILED] == 0
    assert report.segments + report.segments_left == 12
    assert report.segments_left > 0


def test_a_task_that_cannot_be_done_is_buried_and_unclear(kit: Kit) -> None:
    """Garbled on its way: a dead letter with where it came from and why, and an object that nobody vouches
    for."""
    kit.copy()

    class Garbling(Scene):
        def send(self, segment_id: SegmentId, run: str, value: bytes) -> None:
            super().send(segment_id, run, value[:-10])

    def works(scene: Scene) -> None:
        scene.works()
        scene.world.clock.advance(ANSWER_S / 10)

    scene = Garbling(kit, meanwhile=works)
    report = scene.scrub()

    assert report.counts == {INCONCLUSIVE: 3}
    letters = [letter for member in scene.members for letter in member.letters.durable]
    assert len(letters) == 1
    assert letters[0].record.partition.topic == "tasks"
    assert "is not the JSON of a record" in letters[0].reason


def test_a_worker_with_another_bucket_raises_no_alarm(kit: Kit) -> None:
    """By name it is refused; where the name is the same and the bucket is not, this process looks itself."""
    kit.copy()
    empty = patient(MemoryStore())

    by_name = Scene(kit, bucket="another", meanwhile=Scene.works).scrub()
    by_content = Scene(kit, objects=empty, meanwhile=Scene.works).scrub()

    assert by_name.counts == {INCONCLUSIVE: 3}
    assert by_content.counts == {VERIFIED: 3}


def test_answers_of_other_runs_and_of_strangers_move_nothing(kit: Kit) -> None:
    """A run that was killed, a word that is none: only the answer to this very task counts."""
    record = kit.copy(stored=lambda content: flip(content, 80))
    all_right = tuple(Seen(kind=each, outcome=Verified()) for each in ObjectKind)
    forged = Answer(
        run="an earlier run",
        segment_id=record.segment_id,
        worker="w",
        read_bytes=size_of(record),
        objects=all_right,
    )

    def forges(scene: Scene) -> None:
        scene.answers += [encode_word(forged), b"garbage", b""]
        scene.works()

    scene = Scene(kit, meanwhile=forges)
    report = scene.scrub()

    assert report.counts == {VERIFIED: 2, FAILED: 1}
    assert scene.board.ignored > 0
    assert scene.looks.unreadable > 0


def test_an_answer_of_another_run_would_hide_damage(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unguarded: with any run's answer taken, one from before the damage calls it right."""
    record = kit.copy(stored=lambda content: flip(content, 80))
    all_right = tuple(Seen(kind=each, outcome=Verified()) for each in ObjectKind)
    earlier = Answer(
        run="earlier", segment_id=record.segment_id, worker="w", read_bytes=size_of(record), objects=all_right
    )
    answered = Board.answered
    monkeypatch.setattr(
        Board, "answered", lambda board, answer: answered(board, replace(answer, run=board.run))
    )

    report = Scene(kit, meanwhile=lambda scene: scene.answers.append(encode_word(earlier))).scrub()

    assert report.counts == {VERIFIED: 3}


def test_a_worker_alone_would_raise_an_alarm(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unguarded: with no look of its own, a worker that sees an empty bucket says that all is gone."""
    kit.copy()
    monkeypatch.setattr(looks, "Failed", Unfindable)

    report = Scene(kit, objects=patient(MemoryStore()), meanwhile=Scene.works).scrub()

    assert report.counts == {FAILED: 3}


class Unfindable:
    """No outcome is one."""


def test_a_budget_is_kept_and_what_is_out_when_the_time_is_up_is_left(kit: Kit) -> None:
    """As of one process: at least one segment is done, the rest is for the next run, none of it unclear."""
    records = [kit.copy() for _ in range(10)]
    by_bytes = Scene(kit, meanwhile=Scene.works).scrub(Ask(max_bytes=3 * max(map(size_of, records))))

    def slowly(scene: Scene) -> None:
        scene.works(1)
        kit.hands.turn(60)

    by_time = Scene(kit, meanwhile=slowly).scrub(Ask(max_s=30))

    assert (by_bytes.segments, by_bytes.segments_left) == (3, 7)
    assert (by_time.segments, by_time.segments_left) == (1, 9)
    assert by_time.counts == {VERIFIED: 3}


@pytest.mark.parametrize("workers", [0, 1])
def test_nothing_begins_before_a_worker_was_heard_of(kit: Kit, workers: int) -> None:
    """Nobody within the time is told before the bucket is listed."""
    scene = Scene(kit, workers=workers)
    board = Board(run="run")

    assert await_workers(scene, board, 10.0, clock=scene.world.clock) is (workers > 0)
    assert not kit.events
    assert not any(isinstance(each, Scrubbed) for each in kit.events)
