"""One history for an object, however many replicas of the scaler see to it, and whichever of them is
restarted.

A link is a sample, with what is said of the group by it and what is remembered. Links stand in a log that has
one order for all; each names its place in the chain, and of two for one place the first in the log is the
one. So two replicas that sample at the same moment make one link, and whoever reads the log knows what all
know: docs/decisions/0023-scalers-agree-by-a-log.md.

Times in a chain are of one clock, that of its links: whoever reads one as it is written carries on from there
by its own monotonic clock. No clock of two machines is ever compared but to tell how long ago a link was
written.

Pure: times come in as arguments.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from workers.scaler.evaluate import evaluate
from workers.scaler.options import Options
from workers.scaler.values import Evaluation, Sample, State
from workers.scaler.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """`by` names the process that wrote it."""

    object_key: str
    place: int
    by: str
    options: Options
    sample: Sample
    state: State
    word: Evaluation


def object_key(namespace: str, name: str, options: Options) -> str:
    """A ScaledObject under these options: other options are another object, and begin anew."""
    return f"{namespace}/{name}/{options.fingerprint}"


@dataclass(slots=True)
class Chain:
    """The end of an object's chain, as far as its window goes. Changed only by `take`."""

    window: Window = field(default_factory=Window)
    last: Link | None = None
    read_at_s: float = 0.0  # by the reader's own clock, when the last link was new

    def take(self, link: Link, *, now_s: float, age_s: float = 0.0) -> bool:
        """The next link in the log; False where another has its place. `age_s`: since when it stands
        there.
        """
        if self.last is not None and link.place <= self.last.place:
            return False
        self.window = self.window.with_sample(link.sample, horizon_s=link.options.horizon_s)
        self.last = link
        self.read_at_s = now_s - age_s
        return True

    def since_s(self, now_s: float) -> float | None:
        """How long ago the last link was new."""
        return None if self.last is None else now_s - self.read_at_s

    def next(self, key: str, options: Options, seen: Sample, *, by: str, now_s: float, wall_s: float) -> Link:
        """The link that this sample would make. `wall_s` begins the clock of a chain without links."""
        at_s = wall_s if self.last is None else self.last.sample.at_s + max(1e-3, now_s - self.read_at_s)
        seen = replace(seen, at_s=at_s)
        window = self.window.with_sample(seen, horizon_s=options.horizon_s)
        state, word = evaluate(options, State() if self.last is None else self.last.state, window)
        return Link(
            object_key=key,
            place=0 if self.last is None else self.last.place + 1,
            by=by,
            options=options,
            sample=seen,
            state=state,
            word=word,
        )
