"""A transactional producer that sends batches as they are.

    begin     InitProducerId: whoever wrote under this name before is fenced, what he left open is aborted
    enter     AddPartitionsToTxn, before the first batch for a partition
    send      Produce, without waiting: the leader answers in order. Where a batch went comes by `settle`
    commit    EndTxn, once every batch has its offset

librdkafka's producer takes records, not batches, and would open and compress each batch anew.

Owns its connections, and the producer's id, epoch and sequences. Refuses to mend: an error ends the
transaction, and `begin` aborts it. So no batch is ever sent twice in one transaction, and order needs no
other guard.

Invariant: `settle` returns one offset for each batch sent since, in the order of sending; or raises.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import NamedTuple

from backup.topic import messages
from backup.topic.errors import TakenOver, WriteFailed, WriteRefused
from backup.topic.outgoing import Sender
from tiering.cluster.quorum.client import addresses
from tiering.cluster.quorum.connection import A, Connection, Sent
from tiering.cluster.quorum.errors import Unaskable
from tiering.log.errors import LogFormatError

TIMEOUT_S = 30.0
TRANSACTION_TIMEOUT_MS = 120_000
UNANSWERED_MAX = 64  # batches under way to one leader
UNANSWERED_BYTES_MAX = 16 * 1024 * 1024
BEGIN_ATTEMPTS = 120
PAUSE_S = 0.25

_WAIT = {14, 15, 16, 51, 7, 13}  # COORDINATOR_LOAD_IN_PROGRESS, _NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_…
_FENCED = {47, 90}  # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED
_NAMES = {
    2: "CORRUPT_MESSAGE",
    3: "UNKNOWN_TOPIC_OR_PARTITION",
    6: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    10: "MESSAGE_TOO_LARGE: max.message.bytes of the topic is smaller than a batch of the source",
    14: "COORDINATOR_LOAD_IN_PROGRESS",
    15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR",
    18: "RECORD_LIST_TOO_LARGE",
    19: "NOT_ENOUGH_REPLICAS",
    20: "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    29: "TOPIC_AUTHORIZATION_FAILED: it takes Write on the topic",
    32: "INVALID_TIMESTAMP: the topic's message.timestamp settings refuse the records' times",
    44: "POLICY_VIOLATION",
    45: "OUT_OF_ORDER_SEQUENCE_NUMBER",
    47: "INVALID_PRODUCER_EPOCH",
    48: "INVALID_TXN_STATE",
    49: "INVALID_PRODUCER_ID_MAPPING",
    51: "CONCURRENT_TRANSACTIONS",
    53: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED: it takes Write on the transactional id",
    56: "KAFKA_STORAGE_ERROR",
    76: "UNSUPPORTED_COMPRESSION_TYPE",
    87: "INVALID_RECORD",
    90: "PRODUCER_FENCED",
}
_REFUSED = {10, 18, 29, 32, 44, 50, 53, 76, 87}


class _Waiting(NamedTuple):
    """A batch whose answer has not come."""

    sent: Sent[messages.ProduceResponse]
    number: int  # in the order of sending
    size_bytes: int


class _Line:
    """The connection to one leader, and what is under way on it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.waiting: deque[_Waiting] = deque()
        self.bytes = 0


class TransactionalWriter:
    """One transactional id. For one thread. `settings` are librdkafka's, of the target's cluster."""

    def __init__(
        self,
        settings: Mapping[str, str],
        transactional_id: str,
        topic: str,
        *,
        pause: Callable[[float], None],
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._settings = dict(settings)
        self._id = transactional_id
        self._topic = topic  # for errors
        self._pause = pause
        self._timeout_s = timeout_s
        self._coordinator: Connection | None = None
        self._lines: dict[tuple[str, int], _Line] = {}
        self._leaders: dict[tuple[str, int], tuple[str, int]] = {}
        self._senders: dict[tuple[str, int], Sender] = {}
        self._producer = (-1, -1)
        self._entered: set[tuple[str, int]] = set()
        self._offsets: dict[int, int] = {}
        self._sent = 0

    def __enter__(self) -> TransactionalWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        for line in self._lines.values():
            line.connection.close()
        if self._coordinator is not None:
            self._coordinator.close()
        self._coordinator, self._lines, self._leaders = None, {}, {}

    def begin(self) -> None:
        """A producer that is the only one of its name, with nothing open."""
        self.close()
        self._senders, self._entered, self._offsets = {}, set(), {}
        body = messages.init_producer_id(self._id, TRANSACTION_TIMEOUT_MS)
        code = 0
        for attempt in range(BEGIN_ATTEMPTS):
            try:
                answer = self._at_coordinator().ask(messages.InitProducerIdResponse, body, "InitProducerId")
            except OSError as broken:
                self.close()
                if attempt == BEGIN_ATTEMPTS - 1:
                    raise self._failed("begin", str(broken)) from broken
                self._pause(PAUSE_S)
                continue
            except (Unaskable, LogFormatError) as refused:
                raise self._never("begin", str(refused)) from refused
            code = answer.error_code
            if code == 0:
                self._producer = (answer.producer_id, answer.producer_epoch)
                return
            if code not in _WAIT:
                raise self._refused("begin", code)
            if code in (15, 16):
                self.close()
            self._pause(PAUSE_S)
        raise self._refused("begin", code)

    def enter(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Take these partitions into the transaction."""
        new = [each for each in partitions if each not in self._entered]
        if not new:
            return
        body = messages.add_partitions(self._id, *self._producer, new)
        for _ in range(BEGIN_ATTEMPTS):
            answer = self._ask_coordinator(messages.AddPartitionsToTxnResponse, body, "AddPartitionsToTxn")
            codes = {
                each.partition_error_code
                for topic in answer.results_by_topic
                for each in topic.results_by_partition
            }
            if codes <= {0}:
                self._entered.update(new)
                return
            # The transaction before is being finished yet: its markers are on their way.
            if not codes <= {0, 51}:
                raise self._refused("enter", max(codes))
            self._pause(PAUSE_S / 10)
        raise self._refused("enter", 51)

    def sender(self, topic: str, partition: int) -> Sender:
        """As whom the next batch for a partition is to be made."""
        at = (topic, partition)
        if at not in self._senders:
            producer_id, epoch = self._producer
            self._senders[at] = Sender(producer_id=producer_id, producer_epoch=epoch)
        return self._senders[at]

    def send(self, topic: str, partition: int, batch: bytes | bytearray) -> int:
        """Send a batch; its number among those sent, by which `settle` gives its offset."""
        assert (topic, partition) in self._entered, "enter comes first"
        line = self._line(topic, partition)
        body = messages.produce(self._id, topic, partition, batch, round(self._timeout_s * 1000))
        try:
            sent = line.connection.send(messages.ProduceResponse, body, "Produce")
        except Unaskable as refused:
            raise self._never("send", str(refused)) from refused
        except OSError as broken:
            raise self._failed("send", str(broken)) from broken
        number, self._sent = self._sent, self._sent + 1
        line.waiting.append(_Waiting(sent, number, len(batch)))
        line.bytes += len(batch)
        while len(line.waiting) > UNANSWERED_MAX or line.bytes > UNANSWERED_BYTES_MAX:
            self._receive(line)
        return number

    def settle(self) -> Mapping[int, int]:
        """Wait for every answer; each batch's offset since the last call, by its number."""
        for line in self._lines.values():
            while line.waiting:
                self._receive(line)
        found, self._offsets = self._offsets, {}
        return found

    def commit(self) -> None:
        """End the transaction; all of it is there for whoever reads what is committed."""
        assert not any(line.waiting for line in self._lines.values()), "settle comes first"
        body = messages.end_transaction(self._id, *self._producer, commit=True)
        for _ in range(BEGIN_ATTEMPTS):
            code = self._ask_coordinator(messages.EndTxnResponse, body, "EndTxn").error_code
            if code == 0:
                self._entered = set()
                return
            if code not in (14, 51):  # those mean that nothing has been done yet
                raise self._refused("commit", code)
            self._pause(PAUSE_S)
        raise self._refused("commit", 51)

    def _receive(self, line: _Line) -> None:
        waiting = line.waiting.popleft()
        line.bytes -= waiting.size_bytes
        try:
            answer = line.connection.answer(waiting.sent)
        except LogFormatError as broken:
            raise self._never("send", str(broken)) from broken
        except OSError as broken:
            raise self._failed("send", str(broken)) from broken
        [topic] = answer.responses
        [produced] = topic.partition_responses
        if produced.error_code != 0:
            raise self._refused("send", produced.error_code, produced.error_message)
        self._offsets[waiting.number] = produced.base_offset

    def _line(self, topic: str, partition: int) -> _Line:
        at = (topic, partition)
        if at not in self._leaders:
            self._leaders[at] = self._leader_of(topic, partition)
        where = self._leaders[at]
        if where not in self._lines:
            try:
                connection = Connection(*where, self._settings, timeout_s=self._timeout_s)
            except (Unaskable, LogFormatError) as refused:
                raise self._never("send", str(refused)) from refused
            except OSError as broken:
                raise self._failed("send", str(broken)) from broken
            self._lines[where] = _Line(connection)
        return self._lines[where]

    def _leader_of(self, topic: str, partition: int) -> tuple[str, int]:
        answer = self._ask_coordinator(messages.MetadataResponse, messages.metadata([topic]), "Metadata")
        for found in answer.topics:
            if found.error_code not in (0, 5):
                raise self._refused("find the leader", found.error_code)
            for each in found.partitions:
                if each.partition_index == partition and each.leader_id in answer.nodes:
                    node = answer.nodes[each.leader_id]
                    return node.host, node.port
        raise self._failed("find the leader", f"partition {partition} has none")

    def _ask_coordinator(self, table: type[A], body: bytes, name: str) -> A:
        try:
            return self._at_coordinator().ask(table, body, name)
        except (Unaskable, LogFormatError) as refused:
            raise self._never(name, str(refused)) from refused
        except OSError as broken:
            raise self._failed(name, str(broken)) from broken

    def _at_coordinator(self) -> Connection:
        """The connection to the transaction coordinator; found anew after each `begin`."""
        if self._coordinator is None:
            self._coordinator = self._found()
        return self._coordinator

    def _found(self) -> Connection:
        body = messages.find_coordinator(self._id)
        trouble = OSError("bootstrap.servers names no broker")
        for host, port in addresses(self._settings.get("bootstrap.servers", "")):
            try:
                with Connection(host, port, self._settings, timeout_s=self._timeout_s) as asked:
                    answer = asked.ask(messages.FindCoordinatorResponse, body, "FindCoordinator")
                [found] = answer.coordinators
                if found.error_code == 0:
                    return Connection(found.host, found.port, self._settings, timeout_s=self._timeout_s)
                if found.error_code not in _WAIT:
                    raise self._refused("find the coordinator", found.error_code, found.error_message)
                trouble = OSError(_NAMES.get(found.error_code, f"error {found.error_code}"))
            except OSError as broken:
                trouble = broken
        raise trouble

    def _failed(self, what: str, why: str) -> WriteFailed:
        return WriteFailed(topic=self._topic, what=what, why=why)

    def _never(self, what: str, why: str) -> WriteRefused:
        return WriteRefused(topic=self._topic, what=what, why=why)

    def _refused(self, what: str, code: int, told: str | None = None) -> WriteFailed:
        why = _NAMES.get(code, f"error {code}") + (f" ({told})" if told else "")
        kind = TakenOver if code in _FENCED else WriteRefused if code in _REFUSED else WriteFailed
        return kind(topic=self._topic, what=what, why=why)
