"""The spool against a model of it: any order of emits, acknowledgements, restarts and refusing disks."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from audit_engine.errors import SpoolError
from audit_engine.spool import EmitterName, Spool
from audit_engine.spool.spool import OUTCOME_BYTES
from audit_engine.wire import decode
from rules.identity import LogId
from tests.audit_engine.events import CLUSTER_ID, LOG, OTHER_LOG, certificate, stalled

pytestmark = pytest.mark.slow

NAME = EmitterName(CLUSTER_ID, 1, "agent")
LIMIT_BYTES = OUTCOME_BYTES + 6_000
PADDING = "x" * 20_000  # three of them fill it


@dataclass(frozen=True, slots=True)
class Kept:
    """What an event on disk must be."""

    event_id: str
    incarnation: int
    seq: int
    log_seq: int


class SpoolModel(RuleBasedStateMachine):
    """`waiting` is what Kafka does not have, in order; numbers are given whether or not there is room."""

    @initialize()
    def begins(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "spool.db"
        self.now_ms = 1_000
        self.waiting: list[Kept] = []
        self.count = 0
        self._open()

    def _open(self) -> None:
        self.spool = Spool(self.path, NAME, limit_bytes=LIMIT_BYTES, now_ms=lambda: self.now_ms)
        self.seq = -1
        self.log_seqs = {LOG: -1, OTHER_LOG: -1}
        self.lost = 0
        self.refuses = False

    def teardown(self) -> None:
        if hasattr(self, "spool"):
            self.spool.close()
            self.folder.cleanup()

    @rule(log=st.sampled_from([LOG, OTHER_LOG]), is_large=st.booleans())
    def emits(self, log: LogId, is_large: bool) -> None:
        self.count += 1
        event = stalled(self.count, log, reason=PADDING if is_large else "")
        losses = self.spool.counters().lost
        self.spool.emit(event)
        self.seq += 1
        self.log_seqs[log] += 1
        if self.spool.counters().lost > losses:
            self.lost += 1
            assert self.refuses or self.spool.counters().pending_bytes + 500 + is_large * 20_000 > LIMIT_BYTES
        else:
            assert not self.refuses
            self._keep(event.event_id, self.log_seqs[log])

    @rule()
    def emits_a_certificate(self) -> None:
        self.count += 1
        event = certificate(self.count)
        was_full = self.spool.is_full
        try:
            self.spool.emit(event)
        except SpoolError:
            assert was_full or self.refuses or self.spool.counters().pending_bytes > 5_000
            if self.spool.counters().lost > self.lost:  # written or not: its number is spent
                self.lost += 1
                self.seq += 1
                self.log_seqs[LOG] += 1
        else:
            assert not was_full
            self.seq += 1
            self.log_seqs[LOG] += 1
            self._keep(event.event_id, self.log_seqs[LOG])

    @rule(which=st.sets(st.integers(0, 10)))
    def kafka_acknowledges(self, which: set[int]) -> None:
        if not self.refuses:
            pending = self.spool.pending()
            self.spool.acknowledge([each.position for at, each in enumerate(pending) if at in which])
            self.waiting = [each for at, each in enumerate(self.waiting) if at not in which]

    @rule(refuses=st.booleans())
    def the_disk_refuses(self, refuses: bool) -> None:
        self.spool._connection.execute(f"PRAGMA query_only = {int(refuses)}")
        self.refuses = refuses

    @rule(step_ms=st.integers(-5_000, 5_000))
    def time_passes(self, step_ms: int) -> None:
        self.now_ms = max(0, self.now_ms + step_ms)

    @rule()
    def the_agent_restarts(self) -> None:
        before = self.spool.emitter.incarnation
        self.spool.close()
        self._open()
        assert self.spool.emitter.incarnation > before

    def _keep(self, event_id: str, log_seq: int) -> None:
        self.waiting.append(Kept(event_id, self.spool.emitter.incarnation, self.seq, log_seq))

    @invariant()
    def what_waits_is_what_was_taken(self) -> None:
        found = [decode(each.value) for each in self.spool.pending(limit_bytes=2**30)]
        seen = [Kept(e.event.event_id, e.emitter.incarnation, e.emitter_seq, e.log_seq or 0) for e in found]
        assert seen == self.waiting

    @invariant()
    def counters_are_true_and_the_bound_holds(self) -> None:
        counters = self.spool.counters()
        assert (counters.pending, counters.lost) == (len(self.waiting), self.lost)
        assert counters.pending_bytes + counters.kept_bytes <= LIMIT_BYTES


TestSpoolModel = SpoolModel.TestCase
TestSpoolModel.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
