"""Agents that read the same records agree wherever they meet; one that holds something else is named."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from confluent_kafka import TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from audit_engine.digests import Disagreement, StateAt, TierStateEmitter, TierStates
from audit_engine.digests.emitter import RECORDS_OF_A_LOG, SET_EVERY_MS
from audit_engine.digests.kafka import AuditFollower, first_offset
from audit_engine.spool import EmitterName, Spool
from audit_engine.topic.kafka import Publisher, ensure_audit_topic
from audit_engine.wire import Emitter, Envelope
from rules.events import LogEvent, TierSet, TierState
from rules.identity import LogId
from seawall.local.broker import LocalCluster
from seawall.local.waiting import becomes_true
from tests.audit_engine.events import CLUSTER_ID, stalled, tier_state
from tests.tiering.segments.strategies import LOG, OTHER_LOG, log_record, segment
from tests.tiering.segments.topic import Topic, new_table
from tiering.outcome import Failed, Inconclusive, Verified
from tiering.retention.digests import Digests, Said
from tiering.segments.table import ReferenceTable, TopicRecord

DEADLINE_S = 120.0
GOOD, BAD = "ab" * 32, "cd" * 32


class Agent:
    """A table with the emitter before it; what it said, in order."""

    def __init__(self, *, complete_from: int = 0) -> None:
        self._table = ReferenceTable([new_table(complete_from)])
        self.said: list[LogEvent] = []
        self.now_ms = 1_000_000
        ids = itertools.count()
        self.emitter = TierStateEmitter(
            self, self.said.extend, now_ms=lambda: self.now_ms, new_id=lambda: f"id-{next(ids)}"
        )

    def applied(self, partition: int, records: Sequence[TopicRecord]) -> None:
        [table] = [each for each in self._table.partitions() if each.partition == partition]
        table.apply_many(records)

    @contextmanager
    def table(self) -> Iterator[ReferenceTable]:
        yield self._table

    def reads(self, *batches: Sequence[TopicRecord]) -> Agent:
        for batch in batches:
            self.emitter.applied(0, batch)
        return self

    def digests(self) -> dict[tuple[LogId, int], str]:
        states = (each for each in self.said if isinstance(each, TierState))
        return {(each.log, each.metadata_offset): each.digest for each in states}


def _records(copies: int = 4) -> list[TopicRecord]:
    """Two logs, claimed, then copied segment by segment in turn, with a key between that nobody knows."""
    topic = Topic()
    for log in (LOG, OTHER_LOG):
        topic.claim(log_record(5, epochs=((5, 0),), log=log))
    for number in range(copies):
        for log in (LOG, OTHER_LOG):
            base = number * 10
            of_log = number + (1_000 if log == OTHER_LOG else 0)
            topic.copy(segment(of_log, base, base + 10, epochs=((5, base),), leader_epoch=5, log=log))
        topic.append_raw(b"not ours", b"{}")
    return topic.records


RECORDS = _records()


@settings(max_examples=30, deadline=None)
@given(cuts=st.sets(st.integers(1, len(RECORDS) - 1)), others=st.sets(st.integers(1, len(RECORDS) - 1)))
def test_agents_meet_at_every_record_however_it_came_to_them(cuts: set[int], others: set[int]) -> None:
    """Each says the digest at each record's offset, of the records up to it, whatever the batches were."""
    one, other = Agent().reads(*_cut(cuts)), Agent().reads(*_cut(others))
    table = new_table()
    expected = {}
    for record in RECORDS:
        table.apply(*record)
        for log in (LOG, OTHER_LOG):
            if (digest := table.digest(log)) is not None:
                expected[log, digest.offset] = digest.hex()

    assert one.digests() == other.digests() == expected


def test_a_state_says_what_the_tier_holds_then() -> None:
    """Frontier, segments and bytes are those at its offset, under the name and epoch of the log's record."""
    [first, *_, last] = [each for each in Agent().reads(RECORDS).said if each.log == LOG]

    assert isinstance(first, TierState)
    assert isinstance(last, TierState)
    assert (first.frontier, first.segment_count, first.size_bytes) == (0, 0, 0)
    assert (last.frontier, last.segment_count, last.size_bytes) == (40, 4, 4_000)
    assert (last.topic, last.leader_epoch, last.tiered_start) == ("orders", 5, 0)


def test_nothing_is_said_of_what_compaction_may_have_hidden() -> None:
    """A replay says nothing below the end that it began with; from there on it says what the others say."""
    middle = len(RECORDS) // 2
    restarted = Agent(complete_from=middle).reads(RECORDS).digests()

    assert restarted
    assert min(offset for _, offset in restarted) >= middle
    assert restarted.items() <= Agent().reads(RECORDS).digests().items()


def test_an_agent_that_was_away_says_the_last_of_a_busy_log() -> None:
    """A batch with many records of one log costs few states, and the log's last is among them."""
    records = _records(copies=RECORDS_OF_A_LOG)
    said = Agent().reads(records).digests()
    one_by_one = Agent().reads(*([record] for record in records)).digests()

    assert said == {
        place: digest
        for place, digest in one_by_one.items()
        if place[1] == max(offset for log, offset in one_by_one if log == place[0])
    }


def test_the_full_set_is_said_once_an_offset_and_now_and_then() -> None:
    """On a mismatch, every record that the digest sums up; again when it has moved on, but not at once."""
    agent = Agent().reads(RECORDS[:-4])
    found = Disagreement(log=LOG, metadata_partition=0, metadata_offset=3, groups=((GOOD, (1,)), (BAD, (2,))))
    agent.emitter.disagreed(found)
    agent.emitter.disagreed(found)
    agent.reads(RECORDS[-4:])
    agent.emitter.disagreed(replace(found, metadata_offset=9))
    at_once = sum(1 for each in agent.said if isinstance(each, TierSet))
    agent.now_ms += SET_EVERY_MS
    agent.emitter.disagreed(replace(found, metadata_offset=9))
    sets = [each for each in agent.said if isinstance(each, TierSet)]

    assert at_once == 1
    assert [len(each.members) for each in sets] == [5, 5]
    assert sets[0].metadata_offset < sets[1].metadata_offset
    for each in sets:
        total = sum(int(digest, 16) for _, digest in each.members) % 2**256
        assert agent.digests()[LOG, each.metadata_offset] == f"{total:064x}"


def test_all_agree_only_when_all_have_said_the_same_at_one_offset() -> None:
    """Missing is open, equal is agreement, another digest is a mismatch that names the brokers."""
    states = TierStates()
    states.hear(_said(1, 10, GOOD))
    states.hear(_said(2, 9, GOOD))
    early = _agreement(states)
    states.hear(_said(2, 10, GOOD))
    agreed = _agreement(states)
    told = states.hear(_said(3, 10, BAD))
    mismatch = _agreement(states)

    assert early == Inconclusive("brokers [2] have not said theirs at offset 10")
    assert agreed == Verified()
    assert told == Disagreement(
        log=LOG, metadata_partition=4, metadata_offset=10, groups=((GOOD, (1, 2)), (BAD, (3,)))
    )
    assert isinstance(mismatch, Failed)
    assert "brokers 3 have" in mismatch.problems[0].detail


def test_a_mismatch_is_news_once() -> None:
    """The same word again, delivered twice, is not told again."""
    states = TierStates()
    states.hear(_said(1, 10, GOOD))

    assert states.hear(_said(2, 10, BAD)) is not None
    assert states.hear(_said(2, 10, BAD)) is None


def test_a_newer_incarnation_forgets_what_the_older_said() -> None:
    """That table is gone; what comes late of it counts for nothing."""
    states = TierStates()
    states.hear(_said(1, 10, GOOD))
    states.hear(_said(2, 10, GOOD))
    states.hear(_said(2, 11, GOOD, incarnation=2, log=OTHER_LOG))
    states.hear(_said(2, 10, GOOD))

    assert isinstance(_agreement(states), Inconclusive)
    assert states.of(LOG) == {1: Said(10, GOOD)}


def test_the_newest_of_each_broker_is_what_trimming_asks_for() -> None:
    """The port of tiering.retention: by broker, whatever order it was heard in."""
    states = TierStates()
    port: Digests = states
    for offset in (10, 12, 11):
        states.hear(_said(1, offset, GOOD))

    assert port.of(LOG) == {1: Said(12, GOOD)}
    assert port.of(OTHER_LOG) == {}
    assert states.states(LOG)[1] == tuple(StateAt(4, offset, GOOD) for offset in (10, 11, 12))


def test_memory_is_bounded_by_logs_and_offsets() -> None:
    """The oldest offsets go, and the logs that were silent for longest."""
    states = TierStates(offsets_kept=2, logs_max=1)
    for offset in (3, 1, 2, 0):
        states.hear(_said(1, offset, GOOD))
    kept = states.states(LOG)
    states.hear(_said(1, 5, GOOD, log=OTHER_LOG))

    assert [state.metadata_offset for state in kept[1]] == [2, 3]
    assert states.of(LOG) == {}


def test_logs_that_nobody_asks_for_are_not_kept() -> None:
    """An agent listens for the logs that its broker leads."""
    states = TierStates(is_wanted=lambda log: log == OTHER_LOG)
    states.hear(_said(1, 10, GOOD))

    assert states.of(LOG) == {}


class _Busy:
    """A partition that gets a record with every question."""

    def __init__(self, end: int) -> None:
        self.end = end

    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float, cached: bool
    ) -> tuple[int, int]:
        self.end += 1
        return 0, self.end - 1

    def offsets_for_times(self, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self.end += 1
        return [TopicPartition(each.topic, each.partition, -1) for each in partitions]


def test_what_is_said_while_the_listener_begins_is_heard() -> None:
    """With nothing in the window, reading begins at the end that was asked for before, not after."""
    assert first_offset(_Busy(end=5), TopicPartition("audit", 0, 1_000)) == 5


def test_an_agent_hears_the_others_through_kafka(broker: LocalCluster, tmp_path: Path) -> None:
    """Said by two agents, before and after the listener began; only states are heard."""
    config = {"bootstrap.servers": broker.bootstrap, "reconnect.backoff.max.ms": "500"}
    topic = ensure_audit_topic(config, name="audit-digests", partitions=3).name
    states = TierStates()
    with (
        Spool(tmp_path / "one.db", EmitterName(CLUSTER_ID, 1, "agent")) as one,
        Spool(tmp_path / "two.db", EmitterName(CLUSTER_ID, 2, "agent")) as two,
        Publisher(one, config, topic=topic),
        Publisher(two, config, topic=topic),
    ):
        one.emit_many([stalled(1), tier_state(7, GOOD, LOG), tier_state(8, GOOD, OTHER_LOG)])
        with AuditFollower(config, states.hear, topic=topic) as follower:
            assert becomes_true(lambda: 1 in states.of(LOG), deadline_s=DEADLINE_S)
            two.emit(tier_state(7, GOOD, LOG))
            assert becomes_true(lambda: isinstance(_agreement(states, 7), Verified), deadline_s=DEADLINE_S)
            assert becomes_true(lambda: follower.heard >= 3, deadline_s=DEADLINE_S)

    assert follower.malformed == 0
    assert states.of(OTHER_LOG) == {1: Said(8, GOOD)}


def _said(broker_id: int, offset: int, digest: str, *, incarnation: int = 1, log: LogId = LOG) -> Envelope:
    return Envelope(
        event=tier_state(offset, digest, log),
        emitter=Emitter(broker_id, "agent", incarnation),
        emitter_seq=offset,
        log_seq=0,
        observed_at_ms=1,
    )


def _agreement(states: TierStates, offset: int = 10) -> object:
    return states.agreement(LOG, [1, 2], metadata_partition=4, metadata_offset=offset)


def _cut(places: set[int]) -> list[list[TopicRecord]]:
    bounds = [0, *sorted(places), len(RECORDS)]
    return [RECORDS[start:end] for start, end in itertools.pairwise(bounds)]
