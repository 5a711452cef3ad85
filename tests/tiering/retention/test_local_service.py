"""Trimming by a whole agent: whose logs it looks at, what a turn remembers, and what trouble comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rules.events import TrimCertified, TrimOutcome, TrimResult
from tests.tiering.retention.agent import BROKER, NAMES, Agent
from tests.tiering.retention.world import EPOCH
from tests.tiering.segments.strategies import CLUSTER_ID, LOG, OTHER_LOG
from tiering.cluster.interface import TopicPartition
from tiering.cluster.log_dirs import Surveyor
from tiering.cluster.topics import TopicFilter
from tiering.retention.digests import Said
from tiering.retention.local import Trim
from tiering.retention.local_service import LocalTrim, TrimStatus
from tiering.retention.local_trim import Answer, Answered
from tiering.segments.records import LogId, SegmentRecord
from tiering.store.interface import Stored
from tiering.uploader.one_log import Cluster

ORDERS = TopicPartition("orders", LOG.partition)
PAYMENTS = TopicPartition("payments", OTHER_LOG.partition)


@dataclass
class Trimmer:
    """An agent with log dirs, and a broker that does what it is asked."""

    folder: Path
    agent: Agent = field(default_factory=Agent)
    said: dict[LogId, Said] = field(default_factory=dict)
    answer: Answered = field(default_factory=lambda: Answered(answer=Answer.DONE, reason="done"))
    applies: bool = True
    asked: list[tuple[TopicPartition, int]] = field(default_factory=list)
    refs: dict[str, SegmentRecord] = field(default_factory=dict)

    def __post_init__(self) -> None:
        identity = f"version=1\ncluster.id={CLUSTER_ID}\nnode.id={BROKER}\n"
        (self.folder / "meta.properties").write_text(identity)
        self.trim = LocalTrim(
            survey=Surveyor(
                [self.folder], topics=TopicFilter(), now_ns=lambda: self.agent.now_ms * 1_000_000
            ).survey,
            cluster=Cluster(
                leadership=self.agent.answers, offsets=self.agent.answers, settings=self.agent.answers
            ),
            table=self.agent.retention.table,
            digests=self,
            policy=self.agent.retention.policy,
            objects=self,
            requests=self,
            sink=self.agent,
            now_ms=lambda: self.agent.now_ms,
            new_id=self.agent.retention.new_id,
        )

    def tiered(self, log: LogId) -> None:
        """Three closed segments on disk and an active one, the three in the tier; all agents agree."""
        path = self.folder / f"{NAMES[log.topic_id]}-{log.partition}"
        path.mkdir()
        (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {log.topic_id}")
        (path / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n{EPOCH} 300\n")
        for base in (0, 100, 200, 300):
            (path / f"{base:020d}.log").write_bytes(b"x" * 100)
        self.agent.claim(log, epochs=((0, 0), (EPOCH, 300)))
        for base in (0, 100, 200):
            made = self.agent.copy(log, base, base + 100)
            self.refs[made.key_stem] = made
        self.all_agree(log)

    def all_agree(self, log: LogId) -> None:
        with self.agent.metadata.table() as tables:
            table = tables.of(log)
            digest = None if table is None else table.digest(log)
        assert digest is not None
        self.said[log] = Said(digest.offset, digest.hex())

    def of(self, log: LogId) -> Mapping[int, Said]:
        return dict.fromkeys((2, 3), self.said[log])

    def run(self) -> Mapping[LogId, TrimStatus]:
        return self.trim.run_once()

    def head(self, key: str, version_id: str | None = None) -> Stored:
        stem, _, kind = key.rpartition(".")
        ref = dict(self.refs[stem].objects.present())[kind]
        return Stored(size_bytes=ref.size_bytes, checksum=ref.checksum, version_id=version_id or "")

    def delete_records(self, partition: TopicPartition, up_to: int) -> Answered:
        self.asked.append((partition, up_to))
        if self.applies:
            self.agent.answers.log_starts[partition] = up_to
        return self.answer


@pytest.fixture
def trimmer(tmp_path: Path) -> Trimmer:
    """Two logs, led here, all of whose closed segments have expired on disk."""
    made = Trimmer(tmp_path)
    made.tiered(LOG)
    made.tiered(OTHER_LOG)
    return made


def _left(log: LogId, certificate_id: str = "c-1") -> TrimCertified:
    return TrimCertified(
        event_id=certificate_id,
        occurred_at_ms=1,
        log=log,
        topic=NAMES[log.topic_id],
        leader_epoch=EPOCH,
        certificate_id=certificate_id,
        old_start=0,
        new_start=100,
        frontier=300,
        metadata_partition=0,
        metadata_offset=0,
        digest="0" * 64,
        agreeing_brokers=(1, 2, 3),
        segments=(),
    )


@pytest.mark.parametrize(
    ("start", "result"), [(100, TrimResult.ADVANCED), (120, TrimResult.ADVANCED), (0, TrimResult.TIMED_OUT)]
)
def test_an_earlier_runs_request_is_read_back_first(trimmer: Trimmer, start: int, result: TrimResult) -> None:
    """An agent that was killed between certificate and outcome: the next one says the outcome, once, and only
    then goes on with that log; a leader that does not answer is asked again in the next run."""
    at = TopicPartition(NAMES[LOG.topic_id], LOG.partition)
    trimmer.agent.answers.log_starts[at] = start
    trimmer.trim.left = [_left(LOG)]
    trimmer.agent.answers.silent.add(at.topic)
    silent = trimmer.run()
    asked_while_silent = list(trimmer.asked)
    trimmer.agent.answers.silent.clear()
    trimmer.run()

    told = [each for each in trimmer.agent.events if isinstance(each, TrimOutcome)]
    assert LOG not in silent
    assert all(partition != at for partition, _ in asked_while_silent)
    assert [(each.result, each.start_read_back) for each in told if each.certificate_id == "c-1"] == [
        (result, start)
    ]
    assert trimmer.trim.left == []


def test_every_log_led_here_is_trimmed_once(trimmer: Trimmer) -> None:
    """One request a log, certified and told; the next run finds nothing to do."""
    taken = trimmer.run()

    assert sorted(trimmer.asked) == [(ORDERS, 300), (PAYMENTS, 300)]
    assert {(status.state, status.trimmed_offsets) for status in taken.values()} == {("trimmed", 300)}
    assert [type(event) for event in trimmer.agent.events] == [TrimCertified, TrimOutcome] * 2

    again = trimmer.run()
    assert len(trimmer.asked) == 2
    assert {status.state for status in again.values()} == {"kept"}


def test_a_plan_asks_nobody_for_anything(trimmer: Trimmer) -> None:
    """The decision as a value, printable; no request, no event."""
    plans = trimmer.trim.plan()

    assert all(isinstance(plan.decision, Trim) for plan in plans)
    [lines] = [list(plan.lines()) for plan in plans if plan.log == LOG]
    assert "every replica's start moves from 0 to 300" in lines[0]
    assert len(lines) == 5
    assert (trimmer.asked, trimmer.agent.events) == ([], [])


def test_off_by_default(trimmer: Trimmer) -> None:
    """A topic whose policy does not ask for a trim is not even looked at."""
    trimmer.agent.policy = {"version": 1, "topics": {"*": {"total_retention_ms": "7d", "tiering": True}}}

    assert trimmer.run() == {}
    assert trimmer.asked == []


def test_what_another_leads_is_not_ours(trimmer: Trimmer) -> None:
    """And what nobody says who leads is left alone as well."""
    trimmer.agent.answers.led_by[ORDERS] = (BROKER + 1, EPOCH)
    trimmer.agent.answers.silent.add("payments")

    assert trimmer.run() == {}
    assert trimmer.asked == []


def test_a_record_that_others_have_not_spoken_of_keeps(trimmer: Trimmer) -> None:
    """Their digests are of an earlier offset: not before they come to ours."""
    trimmer.agent.change(LOG)

    taken = trimmer.run()
    assert (taken[LOG].state, taken[LOG].reason) == ("kept", "digest_missing")

    trimmer.all_agree(LOG)
    trimmer.run()
    assert (ORDERS, 300) in trimmer.asked


def test_what_timed_out_is_read_back_before_anything_else(trimmer: Trimmer) -> None:
    """The late effect is told under the first certificate, and no second request is made for it."""
    trimmer.agent.answers.led_by[PAYMENTS] = (BROKER + 1, EPOCH)
    trimmer.answer, trimmer.applies = Answered(answer=Answer.TIMED_OUT, reason="slow"), False
    taken = trimmer.run()
    assert (taken[LOG].state, taken[LOG].failures) == ("timed_out", 1)
    trimmer.run()
    assert len(trimmer.asked) == 1, "it is not asked again before its time"

    trimmer.agent.answers.log_starts[ORDERS] = 300
    trimmer.agent.now_ms += 3_600_000
    trimmer.run()

    assert len(trimmer.asked) == 1
    outcomes = [event for event in trimmer.agent.events if isinstance(event, TrimOutcome)]
    assert [event.result for event in outcomes] == [TrimResult.TIMED_OUT, TrimResult.ADVANCED]
    assert len({event.certificate_id for event in outcomes}) == 1


def test_an_open_request_that_cannot_be_read_back_is_waited_for(trimmer: Trimmer) -> None:
    """While the leader is silent nothing more is asked of it, and nothing is told twice."""
    trimmer.agent.answers.led_by[PAYMENTS] = (BROKER + 1, EPOCH)
    trimmer.answer, trimmer.applies = Answered(answer=Answer.TIMED_OUT, reason="slow"), False
    trimmer.run()
    told = len(trimmer.agent.events)
    trimmer.agent.now_ms += 3_600_000
    leadership = trimmer.agent.answers.leadership([ORDERS, PAYMENTS])
    trimmer.agent.answers.silent.add("orders")
    trimmer.agent.answers.leadership = lambda partitions: leadership  # type: ignore[method-assign]

    taken = trimmer.run()

    assert (taken[LOG].state, taken[LOG].pending is not None) == ("unknown", True)
    assert (len(trimmer.asked), len(trimmer.agent.events)) == (1, told)


def test_one_logs_trouble_ends_no_other_logs_turn(trimmer: Trimmer) -> None:
    """T7: a store that fails for one log is that log's status; the other is trimmed."""
    trimmer.refs = {stem: each for stem, each in trimmer.refs.items() if each.log == OTHER_LOG}

    taken = trimmer.run()

    assert (taken[LOG].state, taken[LOG].reason) == ("failed", "KeyError")
    assert trimmer.asked == [(PAYMENTS, 300)]


def test_a_topic_made_anew_under_the_name_is_left_alone(trimmer: Trimmer) -> None:
    """The directory is the old topic's, the name the new one's: DeleteRecords goes by name."""
    trimmer.agent.answers.topic_ids["orders"] = "AAAAAAAAAAAAAAAAAAAAAA"

    taken = trimmer.run()

    assert (taken[LOG].state, taken[LOG].reason) == ("kept", "epoch_unconfirmed")
    assert trimmer.asked == [(PAYMENTS, 300)]
