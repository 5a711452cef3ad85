"""Any failure of the machinery restarts the whole, with backoff, and loses nothing."""

from __future__ import annotations

from threading import Event

from tests.workers.consumer.worlds import NO_MAPS, P0
from workers.consumer.loop import ParallelConsumer
from workers.consumer.outcomes import Done
from workers.consumer.supervisor import Backoff, Supervisor
from workers.testing.by_hand import ByHand
from workers.testing.checks import assert_all_handled, assert_key_order, assert_no_loss, repeats
from workers.testing.source import MemorySource
from workers.testing.world import World


class Runs:
    """Builds one run after another; each breaks in its own way until there are no more ways."""

    def __init__(self, world: World, breaks: list[str]) -> None:
        self.world, self.breaks = world, breaks
        self.stop = Event()
        self.waits: list[float] = []
        self.built = 0

    def build(self) -> ParallelConsumer:
        if self.breaks[:1] == ["build"]:
            self.breaks.pop(0)
            raise ConnectionError("no broker")
        self.built += 1
        name = f"run-{self.built}"
        source = MemorySource(self.world.broker, name, self.world.clock)
        executor = ByHand(name, self.world.journal, self.world.clock)
        executor.while_waiting = finish_the_last
        clock, tell = self.world.clock, lambda event, **facts: self.world.told.append((event, facts))
        return ParallelConsumer(source, executor, settings=NO_MAPS, clock=clock, tell=tell)

    def break_down(self, source: MemorySource, executor: ByHand) -> None:
        match self.breaks.pop(0):
            case "poll":
                source.break_next_poll = True
            case "executor":
                executor.is_broken = True

    def wait(self, _: Event, seconds: float) -> None:
        self.waits.append(seconds)
        self.world.clock.advance(seconds)


def finish_the_last(executor: ByHand) -> None:
    if executor.held:
        executor.finish(len(executor.held) - 1, Done())


def run(breaks: list[str], *, backoff: Backoff | None = None) -> Runs:
    world = World([P0], NO_MAPS)
    for number in range(30):
        world.broker.produce(P0, b"key-%d" % (number % 5))
    runs = Runs(world, breaks)
    watched = _Watched(runs)
    supervisor = Supervisor(
        watched.build,
        backoff=backoff,
        clock=world.clock,
        wait=runs.wait,
        chance=lambda: 0.0,
        tell=lambda event, **facts: world.told.append((event, facts)),
    )
    supervisor.run(runs.stop)
    assert_no_loss(world.broker, world.journal)
    assert_key_order(world.broker, world.journal)
    assert_all_handled(world.broker, world.journal)
    return runs


class _Watched:
    """Ends the run when everything is committed: nothing else would."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._turns = 0

    def build(self) -> ParallelConsumer:
        consumer = self._runs.build()
        turn = consumer.turn

        def counted() -> None:
            turn()
            self._turns += 1
            assert self._turns < 5_000, "it never came to its end"
            if self._turns % 7 == 0 and self._runs.breaks and self._runs.breaks[0] == "turn":
                self._runs.breaks.pop(0)
                raise RuntimeError("a defect of ours")
            if not self._runs.breaks and not self._runs.world.broker.lag():
                self._runs.stop.set()
            elif self._turns % 5 == 0 and self._runs.breaks[:1] in (["poll"], ["executor"]):
                source, executor = consumer._source, consumer._executor
                assert isinstance(source, MemorySource)
                assert isinstance(executor, ByHand)
                self._runs.break_down(source, executor)

        consumer.turn = counted  # type: ignore[method-assign]
        return consumer


def test_an_undisturbed_run_is_not_restarted() -> None:
    """And it ends in order, with everything committed."""
    runs = run([])

    assert (runs.built, runs.waits, repeats(runs.world.journal)) == (1, [], 0)


def test_whatever_breaks_the_whole_is_restarted_and_nothing_is_lost() -> None:
    """The client, the executor, a defect of the loop, and a broker that is not there yet."""
    runs = run(["build", "poll", "executor", "turn", "poll"])

    assert runs.built == 5
    assert [event for event, _ in runs.world.told].count("restarting") == 5


def test_the_waits_double_up_to_their_bound() -> None:
    """And what failed is told each time."""
    runs = run(["build"] * 6, backoff=Backoff(first_s=1, most_s=8, calm_s=60))

    assert runs.waits == [1, 2, 4, 8, 8, 8]
    first = next(facts for event, facts in runs.world.told if event == "restarting")
    assert first["why"] == "ConnectionError: no broker"


def test_a_long_run_starts_the_waits_anew() -> None:
    """A failure a day is not the same as a failure a second."""
    runs = run(["build", "build", "turn"], backoff=Backoff(first_s=1, most_s=8, calm_s=0))

    assert runs.waits == [1, 1, 1]
