"""A broker of one's own making: enough of Kafka's protocol over logs in memory, and all that can go wrong.

It speaks by the endpoint's own tables; that those are Kafka's is shown elsewhere. Several may be one cluster:
they share a `World`, in which each partition has a leader that a test moves as it likes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.tiering.reader.tier import LogOfBatches
from tests.tiering.segments.strategies import LOG
from tiering.log.wire import Uuid
from tiering.serve.protocol import apis
from tiering.serve.protocol.apis import APIS, Fate
from tiering.serve.protocol.asking import (
    EpochEnd,
    EpochEndTopic,
    ListedPartition,
    ListedTopic,
    ListOffsetsResponse,
    MetadataBroker,
    MetadataPartition,
    MetadataResponse,
    MetadataTopic,
    OffsetForLeaderEpochResponse,
)
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.fetching import (
    AbortedTransaction,
    FetchedTopic,
    FetchResponse,
    PartitionData,
)
from tiering.serve.protocol.forms import read_message
from tiering.serve.protocol.frames import LENGTH, answer_pieces, read_head
from tiering.serve.protocol.session import (
    AclResource,
    ApiVersion,
    ApiVersionsResponse,
    Coordinator,
    DescribeAclsResponse,
    FindCoordinatorResponse,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)

TOPIC = "orders"
TOPIC_ID = Uuid(LOG.topic_id)
READ_ALLOWED = 1 << 3 | 1 << 8


@dataclass(slots=True)
class Partition:
    """What brokers have of one partition."""

    log: LogOfBatches
    local_start: int = 0
    leader: int = 1
    epoch: int = 0
    last_stable: int | None = None

    def data(self, index: int, offset: int, max_bytes: int) -> PartitionData:
        end = self.log.end
        stable = end if self.last_stable is None else self.last_stable
        code = Code.NONE if self.local_start <= offset <= end else Code.OFFSET_OUT_OF_RANGE
        pieces: list[bytes] = []
        for batch in self.log.batches:
            if code == Code.NONE and batch.end > offset:
                if pieces and sum(map(len, pieces)) + len(batch.content) > max_bytes:
                    break
                pieces.append(batch.content)
        return PartitionData(
            partition_index=index,
            error_code=code,
            high_watermark=end if code == Code.NONE else -1,
            last_stable_offset=stable if code == Code.NONE else -1,
            log_start_offset=self.local_start if code == Code.NONE else -1,
            aborted_transactions=tuple(
                AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
                for each in self.log.aborted
                if each.last_offset >= offset
            ),
            records=(b"".join(pieces),),
        )


@dataclass(slots=True)
class World:
    """A cluster. `asked` is every request that any broker got, by name."""

    partitions: dict[int, Partition]
    cluster_id: str = LOG.cluster_id
    topic_id: Uuid = TOPIC_ID
    brokers: dict[int, FakeBroker] = field(default_factory=dict)
    coordinator: int = 1
    acls: tuple[AclResource, ...] = ()
    acl_error: int = 0
    users: Mapping[str, str] = field(default_factory=dict)  # and their passwords; none: no SASL
    readers: frozenset[str] = frozenset()  # users who may read
    asked: list[tuple[int, str, str]] = field(default_factory=list)  # broker, request, user
    group_answer: bytes = b""
    hangs: bool = False
    holds: int = -1  # requests of this key hang


class FakeBroker:
    """One broker, in the loop that runs."""

    def __init__(self, world: World, node_id: int) -> None:
        self.world = world
        self.node_id = node_id
        self.port = 0
        self._server: asyncio.Server | None = None
        self._clients: set[asyncio.StreamWriter] = set()
        world.brokers[node_id] = self

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """As when its host goes: nobody listens, and all connections break."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._clients):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._clients.add(writer)
        user = ""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                [size] = LENGTH.unpack(await reader.readexactly(4))
                frame = await reader.readexactly(size)
                head = read_head(frame)
                api = APIS[head.key]
                self.world.asked.append((self.node_id, api.name, user))
                while self.world.hangs or self.world.holds == head.key:
                    await asyncio.sleep(0.01)
                if api.fate is Fate.FORWARDED:
                    answer = frame[4:8] + self.world.group_answer
                    writer.write(LENGTH.pack(len(answer)) + answer)
                    continue
                assert api.request is not None
                request: Any = read_message(
                    api.request, head.version, api.is_flexible(head.version), frame, head.body_at
                )
                if head.key == apis.SASL_AUTHENTICATE:
                    _, name, password = request.auth_bytes.decode().split("\0")
                    user = name if self.world.users.get(name) == password else ""
                response = self._answer(head.key, request, user)
                if head.key == apis.FETCH and not any(
                    each.error_code or any(map(len, each.records or ()))
                    for topic in response.responses
                    for each in topic.partitions
                ):
                    await asyncio.sleep(request.max_wait_ms / 1000)
                    response = self._answer(head.key, request, user)
                writer.write(b"".join(answer_pieces(api, head.version, head.correlation_id, response)))
        self._clients.discard(writer)
        writer.transport.abort()

    def _answer(self, key: int, request: Any, user: str) -> Any:
        match key:
            case apis.API_VERSIONS:
                return ApiVersionsResponse(
                    error_code=0,
                    api_keys=tuple(
                        ApiVersion(
                            api_key=each.key, min_version=each.versions[0], max_version=each.versions[-1]
                        )
                        for each in APIS.values()
                    ),
                )
            case apis.METADATA:
                return self._metadata(request, user)
            case apis.LIST_OFFSETS:
                return self._offsets(request)
            case apis.OFFSET_FOR_LEADER_EPOCH:
                return OffsetForLeaderEpochResponse(
                    topics=tuple(
                        EpochEndTopic(
                            topic=topic.topic,
                            partitions=tuple(
                                EpochEnd(
                                    partition=each.partition,
                                    error_code=0,
                                    leader_epoch=each.leader_epoch,
                                    end_offset=self.world.partitions[each.partition].log.end,
                                )
                                for each in topic.partitions
                            ),
                        )
                        for topic in request.topics
                    )
                )
            case apis.FETCH:
                return self._fetched(request)
            case apis.FIND_COORDINATOR:
                port = self.world.brokers[self.world.coordinator].port
                return FindCoordinatorResponse(
                    coordinators=tuple(
                        Coordinator(key=each, node_id=self.world.coordinator, host="127.0.0.1", port=port)
                        for each in request.coordinator_keys
                    )
                )
            case apis.DESCRIBE_ACLS:
                return DescribeAclsResponse(error_code=self.world.acl_error, resources=self.world.acls)
            case apis.SASL_HANDSHAKE:
                return SaslHandshakeResponse(error_code=0, mechanisms=("PLAIN",))
            case apis.SASL_AUTHENTICATE:
                return SaslAuthenticateResponse(error_code=0 if user else Code.SASL_AUTHENTICATION_FAILED)
        raise AssertionError(key)

    def _metadata(self, request: Any, user: str) -> MetadataResponse:
        wanted = request.topics
        named = wanted is None or any(
            each.name == TOPIC or each.topic_id == self.world.topic_id for each in wanted
        )
        unknown = [each.name for each in wanted or () if each.name not in (TOPIC, None)]
        gone = [
            each.topic_id
            for each in wanted or ()
            if each.name is None and each.topic_id != self.world.topic_id
        ]
        alive = [each for each in self.world.brokers.values() if each._server is not None]
        topics = [
            MetadataTopic(error_code=Code.UNKNOWN_TOPIC_OR_PARTITION, name=name, partitions=())
            for name in unknown
        ]
        topics += [
            MetadataTopic(error_code=Code.UNKNOWN_TOPIC_ID, name=None, topic_id=each, partitions=())
            for each in gone
        ]
        if named:
            topics.append(
                MetadataTopic(
                    error_code=0,
                    name=TOPIC,
                    topic_id=self.world.topic_id,
                    topic_authorized_operations=READ_ALLOWED if user in self.world.readers else 1 << 8,
                    partitions=tuple(
                        MetadataPartition(
                            error_code=0,
                            partition_index=index,
                            leader_id=each.leader,
                            leader_epoch=each.epoch,
                            replica_nodes=tuple(self.world.brokers),
                            isr_nodes=tuple(self.world.brokers),
                        )
                        for index, each in self.world.partitions.items()
                    ),
                )
            )
        return MetadataResponse(
            brokers=tuple(
                MetadataBroker(node_id=each.node_id, host="127.0.0.1", port=each.port) for each in alive
            ),
            cluster_id=self.world.cluster_id,
            controller_id=1,
            topics=tuple(topics),
        )

    def _offsets(self, request: Any) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=tuple(
                ListedTopic(
                    name=topic.name,
                    partitions=tuple(self._offset(request, each) for each in topic.partitions),
                )
                for topic in request.topics
            )
        )

    def _offset(self, request: Any, asked: Any) -> ListedPartition:
        partition = self.world.partitions[asked.partition_index]
        if partition.leader != self.node_id:
            return ListedPartition(partition_index=asked.partition_index, error_code=6)
        end = partition.log.end
        if request.isolation_level and partition.last_stable is not None:
            end = partition.last_stable
        offset, timestamp = (end if asked.timestamp == -1 else partition.local_start), -1
        if asked.timestamp >= 0:
            late = [
                each
                for batch in partition.log.batches
                for each in batch.records
                if each.offset >= partition.local_start and each.timestamp_ms >= asked.timestamp
            ]
            offset, timestamp = (late[0].offset, late[0].timestamp_ms) if late else (-1, -1)
        return ListedPartition(
            partition_index=asked.partition_index,
            error_code=0,
            offset=offset,
            timestamp=timestamp,
            leader_epoch=partition.epoch,
        )

    def _fetched(self, request: Any) -> FetchResponse:
        return FetchResponse(
            responses=tuple(
                FetchedTopic(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=tuple(self._data(each, request.max_bytes) for each in topic.partitions),
                )
                for topic in request.topics
            )
        )

    def _data(self, asked: Any, max_bytes: int) -> PartitionData:
        partition = self.world.partitions[asked.partition]
        code = Code.NONE
        if partition.leader != self.node_id:
            code = Code.NOT_LEADER_OR_FOLLOWER
        elif 0 <= asked.current_leader_epoch < partition.epoch:
            code = Code.FENCED_LEADER_EPOCH
        elif asked.current_leader_epoch > partition.epoch:
            code = Code.UNKNOWN_LEADER_EPOCH
        if code != Code.NONE:
            return PartitionData(partition_index=asked.partition, error_code=code, high_watermark=-1)
        return partition.data(asked.partition, asked.fetch_offset, min(asked.partition_max_bytes, max_bytes))
