"""What is known of the real cluster: its brokers, its topics by name and id, and who leads what.

Learned from every answer to Metadata that passes through, whoever asked; asked for as this service where it
is not known. Connections of this service's own to each broker are shared by all that ask as the service.

Owns that knowledge and those connections. Refuses to wait long: what cannot be had in time is None, or an
UpstreamAway, and the client is told to come again.

Invariant: at most TOPICS_MAX topics are remembered, those used last.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tiering.cluster.quorum.client import addresses
from tiering.log.wire import ZERO_UUID, Uuid
from tiering.serve.counters import Counters
from tiering.serve.errors import ServeError, UpstreamAway
from tiering.serve.protocol.apis import APIS, METADATA
from tiering.serve.protocol.asking import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tiering.serve.protocol.codes import Code
from tiering.serve.upstream import Address, Upstream, open_upstream

TOPICS_MAX = 20_000
LOOK_AGAIN_S = 10.0  # a topic may be made anew under its name, and nothing may tell
_GONE = frozenset({Code.UNKNOWN_TOPIC_OR_PARTITION, Code.UNKNOWN_TOPIC_ID})


@dataclass(frozen=True, slots=True, kw_only=True)
class Led:
    """A partition: where its leader listens, if there is one, and of which epoch."""

    leader: Address | None
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTopic:
    """A topic as brokers last said."""

    name: str
    topic_id: Uuid
    partitions: Mapping[int, Led]


class Cluster:
    """For one event loop. `settings` are those of this service, by librdkafka's names."""

    def __init__(self, settings: Mapping[str, str], counters: Counters) -> None:
        self._counters = counters
        self.settings = dict(settings)
        self.cluster_id = ""
        self.brokers: dict[int, Address] = {}
        self._bootstrap = [Address(*each) for each in addresses(settings.get("bootstrap.servers", ""))]
        self._topics: OrderedDict[str, KnownTopic] = OrderedDict()
        self._names: dict[Uuid, str] = {}  # by id
        self._doubted: set[str] = set()
        self._told_s: dict[str, float] = {}
        self._own: dict[Address, asyncio.Task[Upstream]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> Upstream:
        """Ask any broker who there is. Raises the last UpstreamAway where none answers."""
        upstream = await self.any_own()
        found = await upstream.ask(APIS[METADATA], MetadataRequest(topics=()))
        self.learn(found)
        if not self.cluster_id:
            raise ServeError(why="the brokers name no cluster id")
        return upstream

    def addresses(self) -> Sequence[Address]:
        """Where brokers listen, those that were named by a broker first."""
        known = list(dict.fromkeys(self.brokers.values()))
        return [*known, *(each for each in self._bootstrap if each not in known)]

    def learn(self, found: MetadataResponse) -> None:
        """Take over an answer, whoever it was for."""
        self.cluster_id = found.cluster_id or self.cluster_id
        if found.brokers:
            self.brokers = {each.node_id: Address(each.host, each.port) for each in found.brokers}
        for topic in found.topics:
            if topic.error_code == 0 and topic.name is not None and topic.topic_id != ZERO_UUID:
                partitions = {
                    each.partition_index: Led(
                        leader=self.brokers.get(each.leader_id), epoch=each.leader_epoch
                    )
                    for each in topic.partitions
                }
                self._keep(KnownTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
            elif topic.error_code in _GONE and topic.name is not None:
                self._drop(topic.name)

    def named(self, name: str) -> KnownTopic | None:
        return self._topics.get(name)

    def identified(self, topic_id: Uuid) -> KnownTopic | None:
        known = self._topics.get(self._names.get(topic_id, ""))
        return known if known is not None and known.topic_id == topic_id else None

    def doubt(self, name: str) -> None:
        """What was known of a topic may not be so any more: it is asked for again before it is used."""
        if name in self._topics:
            self._doubted.add(name)

    def _drop(self, name: str) -> None:
        self._doubted.discard(name)
        self._told_s.pop(name, None)
        known = self._topics.pop(name, None)
        if known is not None:
            self._names.pop(known.topic_id, None)

    async def topic(self, *, name: str = "", topic_id: Uuid = ZERO_UUID) -> KnownTopic | None:
        """A topic, asked for as this service if it is not known or in doubt.

        Where no broker answers, what was known is still good enough to read from the store.
        """
        known = self.named(name) if name else self.identified(topic_id)
        if known is not None and known.name not in self._doubted:
            self._topics.move_to_end(known.name)
            if time.monotonic() - self._told_s[known.name] > LOOK_AGAIN_S:
                self._start_asking(known.name, ZERO_UUID)  # nobody waits for it
            return known
        try:
            await self._ask_once(known.name if known is not None else name, topic_id)
        except UpstreamAway:
            if known is None:
                raise
        return self.named(name) if name else self.identified(topic_id)

    async def refreshed(self, known: KnownTopic) -> KnownTopic | None:
        """The same topic, asked for now."""
        await self._ask_once(known.name, ZERO_UUID)
        return self.identified(known.topic_id)

    async def own(self, address: Address) -> Upstream:
        """The connection of this service to a broker; shared, opened once for all who wait for it."""
        opening = self._own.get(address)
        if opening is not None and opening.done() and not _is_ready(opening):
            opening = None
        if opening is None:
            opening = asyncio.create_task(open_upstream(address, self.settings))
            self._own[address] = opening
        return await asyncio.shield(opening)

    async def any_own(self) -> Upstream:
        """The connection to some broker that answers, to one that is connected if there is one."""
        failed = UpstreamAway(address="-", why="bootstrap.servers names no broker")
        connected = [
            each for each, opening in self._own.items() if opening.done() and not _is_useless(opening)
        ]
        for address in dict.fromkeys([*connected, *self.addresses()]):
            try:
                return await self.own(address)
            except UpstreamAway as away:
                failed = away
        raise failed

    def close(self) -> None:
        for opening in self._own.values():
            if not opening.done():
                opening.cancel()
            elif not opening.cancelled() and opening.exception() is None:
                opening.result().close()
        for asking in self._asking.values():
            asking.cancel()

    async def _ask_once(self, name: str, topic_id: Uuid) -> None:
        """One question for all who want to know the same at the same time."""
        await asyncio.shield(self._start_asking(name, topic_id))

    def _start_asking(self, name: str, topic_id: Uuid) -> asyncio.Task[None]:
        key = name or topic_id
        asking = self._asking.get(key)
        if asking is None:
            asking = asyncio.create_task(self._ask(name, topic_id))
            self._asking[key] = asking
            asking.add_done_callback(lambda ended: self._answered(key, ended))
        return asking

    def _answered(self, key: str, asking: asyncio.Task[None]) -> None:
        self._asking.pop(key, None)
        if not asking.cancelled():
            asking.exception()  # whoever waited has it

    async def _ask(self, name: str, topic_id: Uuid) -> None:
        upstream = await self.any_own()
        wanted = MetadataRequestTopic(name=name or None, topic_id=ZERO_UUID if name else topic_id)
        request: Any = MetadataRequest(topics=(wanted,), allow_auto_topic_creation=False)
        self.learn(await upstream.ask(APIS[METADATA], request))

    def _keep(self, topic: KnownTopic) -> None:
        before = self._topics.get(topic.name)
        if before is not None and before.topic_id != topic.topic_id:
            self._names.pop(before.topic_id, None)
        self._topics[topic.name] = topic
        self._doubted.discard(topic.name)
        self._told_s[topic.name] = time.monotonic()
        self._names[topic.topic_id] = topic.name
        self._topics.move_to_end(topic.name)
        while len(self._topics) > TOPICS_MAX:
            self._drop(next(iter(self._topics)))
            self._counters.count("forgotten")


def _is_ready(opening: asyncio.Task[Upstream]) -> bool:
    return opening.done() and not _is_useless(opening)


def _is_useless(opening: asyncio.Task[Upstream]) -> bool:
    return opening.cancelled() or opening.exception() is not None or opening.result().is_closed
