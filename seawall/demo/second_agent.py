"""A second replica's agent, in this process: its table follows the same topic of metadata and loses a record.

There is one broker, so this replica is simulated; all that it does is the agent's own code: it follows the
topic, says the digest of its table after each record, hears the others, and says its full set when they
differ. What is made up is one record of a copy that never reaches its table.

Owns the lost record, and the rebuilding. Refuses to write to the topic of metadata.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import structlog

from audit_engine.spool import EmitterName, Spool
from seawall.agent.evidence import Evidence
from seawall.agent.metrics import Tally
from seawall.agent.publishing import COMPONENT, SPOOL_NAME, Publishing
from seawall.agent.sink import LoggedSink
from seawall.agent.world import CLOCKWORK
from tiering.segments.findings import Finding
from tiering.segments.kafka import Follower, KafkaAppender, check_topic, empty_table, topic_ends
from tiering.segments.table import TopicRecord
from tiering.uploader.metadata import Metadata

BROKER_ID = 2
CAUGHT_UP_S = 60.0


class _Forgetful(Metadata):
    """A table that never sees the records of one key."""

    lost: bytes | None = None

    def applied(
        self,
        partition: int,
        records: Sequence[TopicRecord],
        on_finding: Callable[[Finding], None] = lambda _: None,
    ) -> None:
        super().applied(partition, [each for each in records if each.key != self.lost], on_finding)


class SecondAgent:
    """Emits under the number of a broker that is not there, until it is closed."""

    def __init__(self, folder: Path, cluster_id: str, config: Mapping[str, str]) -> None:
        self._config = config
        self._stack = ExitStack()
        self._following = ExitStack()
        folder.mkdir()
        name = EmitterName(cluster_id, BROKER_ID, COMPONENT)
        self._spool = self._stack.enter_context(Spool(folder / SPOOL_NAME, name))
        log = structlog.wrap_logger(logging.getLogger("seawall.demo"), processors=[_said_by_events_alone])
        self._sink = LoggedSink(keeper=self._spool, tally=Tally(), log=log)
        self._publishing = Publishing(
            config=config, spool=self._spool, tally=Tally(), clockwork=CLOCKWORK, stack=self._stack
        )
        self._stack.callback(self._following.close)

    def follow(self, *, but_for: bytes | None = None) -> None:
        """From an empty table; `but_for`: the records of this key get lost on the way into it."""
        self._following.close()
        topic = check_topic(self._config)
        appender = self._following.enter_context(KafkaAppender(self._config, topic))
        metadata = _Forgetful(empty_table(topic, topic_ends(self._config, topic)), appender)
        metadata.lost = but_for
        evidence = Evidence(
            config=self._config,
            spool=self._spool,
            metadata=metadata,
            sink=self._sink,
            clockwork=CLOCKWORK,
            stack=self._following,
        )
        follower = self._following.enter_context(
            Follower(self._config, topic, evidence.applied, positions={})
        )
        assert follower.wait_caught_up(CAUGHT_UP_S)

    def beat(self) -> None:
        self._publishing.beat()

    def close(self) -> None:
        self._stack.close()


def _said_by_events_alone(*_: object) -> str:
    raise structlog.DropEvent
