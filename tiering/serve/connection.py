"""One connection of a client: frames in, answers out, one after the other.

    a frame that is none, an api or version that is not listed   the connection is ended, as by Kafka
    ApiVersions in an unknown version                            answered in version 0: it is asked again
    what goes wrong upstream                                     the connection is ended: the client comes
                                                                 back, and asks who coordinates or leads now
    anything before a client has shown who it is                 the connection is ended

Owns the pace of one client: it is read from only when its last answer was taken, so that it can hold one
request and one answer in memory, never more; a large request takes room of a budget before it is read.
Invariant: answers leave in the order of their requests.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from tiering.log.errors import LogFormatError
from tiering.log.wire import Buffer
from tiering.serve.client import Client
from tiering.serve.errors import UpstreamAway
from tiering.serve.fetch import fetch
from tiering.serve.groups import find_coordinator, forward
from tiering.serve.offsets import list_offsets, offset_for_leader_epoch
from tiering.serve.protocol import apis
from tiering.serve.protocol.apis import APIS, Api, Fate
from tiering.serve.protocol.forms import read_message
from tiering.serve.protocol.frames import LENGTH, RequestHead, answer_pieces, read_head
from tiering.serve.sasl import SignIn
from tiering.serve.service import Service
from tiering.serve.tail import Tails
from tiering.serve.topics import api_versions, metadata, version_not_known
from tiering.serve.who import Who
from tiering.serve.writes import init_producer_id, produce

REQUEST_UNIT_BYTES = 1024  # some thirty partitions of a fetch
WRITE_BYTES = 256 * 1024  # handed to the socket at once; the rest waits until it was taken
BEFORE_SIGN_IN = frozenset({apis.API_VERSIONS, apis.SASL_HANDSHAKE, apis.SASL_AUTHENTICATE})


class Ended(Exception):
    """The connection is to be ended, and which counter says why; empty where nothing is wrong."""


class Connection:
    """`who` is None until the client has signed in, which it does with `sign_in`."""

    def __init__(
        self,
        service: Service,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        who: Who | None,
        sign_in: Callable[[Client], SignIn] | None,
    ) -> None:
        self._service = service
        self._limits = service.limits
        self._reader, self._writer = reader, writer
        self.client = Client(service.cluster, who, service.budget, service.counters)
        self._sign_in = sign_in(self.client) if sign_in is not None else None
        self._tails = Tails(
            self.client,
            service.cluster,
            service.counters,
            answer_bytes_max=service.limits.answer_bytes_max,
        )
        self._body = ExitStack()  # the room of the request
        self.is_idle = True  # between two requests
        self.is_last_answer = False  # the endpoint is about to stop
        self._moved_s = 0.0  # when some of an answer was last taken
        self._tokens, self._token_s = service.limits.requests_per_s, time.monotonic()

    async def serve(self) -> None:
        """Until the client goes, or has to."""
        try:
            while not self.is_last_answer:
                frame = await self._frame()
                self.is_idle = False
                self._service.counters.count("requests")
                await self._pace(len(frame))
                await self._answer(frame)
                del frame
                self._body.close()
                self.is_idle = True
        except Ended as ended:
            if ended.args:
                self._service.counters.count(ended.args[0])
        except (OSError, asyncio.IncompleteReadError):
            pass  # it is gone
        except UpstreamAway:
            pass  # counted where it happened
        finally:
            self.close()

    def close(self) -> None:
        self._body.close()
        self._tails.close()
        self.client.close()
        self._writer.transport.abort()

    async def _frame(self) -> bytes:
        """The next request. A frame that has begun must come to its end soon."""
        limits = self._limits
        idle_s = limits.idle_s if self.client.who is not None else limits.sign_in_s
        try:
            first = await asyncio.wait_for(self._reader.readexactly(1), idle_s)
        except asyncio.TimeoutError:
            raise Ended("clients_idle") from None
        try:
            return await asyncio.wait_for(self._rest(first), limits.frame_s)
        except asyncio.TimeoutError:
            raise Ended("requests_slow") from None

    async def _rest(self, first: bytes) -> bytes:
        [size] = LENGTH.unpack(first + await self._reader.readexactly(LENGTH.size - 1))
        if size < 8:
            raise Ended("requests_malformed")
        key = await self._reader.readexactly(2)
        is_write = int.from_bytes(key, "big") == apis.PRODUCE and self.client.who is not None
        if size > (self._limits.produce_bytes_max if is_write else self._limits.request_bytes_max):
            raise Ended("requests_too_large")
        if size > self._limits.request_small_bytes:
            self._body.callback((await self._service.requests.take(size)).give_back)
        return key + await self._reader.readexactly(size - 2)

    async def _pace(self, size_bytes: int) -> None:
        """No more than so many requests a second, in the mean; large ones count for several."""
        rate, now_s = self._limits.requests_per_s, time.monotonic()
        cost = 1 + size_bytes // REQUEST_UNIT_BYTES
        self._tokens = min(rate, self._tokens + (now_s - self._token_s) * rate) - cost
        self._token_s = now_s
        if self._tokens < 0:
            self._service.counters.count("requests_paced")
            await asyncio.sleep(-self._tokens / rate)

    async def _answer(self, frame: bytes) -> None:
        try:
            head = read_head(frame)
        except LogFormatError:
            raise Ended("requests_malformed") from None
        api = APIS.get(head.key)
        if api is None or api.fate is Fate.ASKED:
            raise Ended("requests_unknown")
        if self.client.who is None and head.key not in BEFORE_SIGN_IN:
            raise Ended("sasl_failed")
        if head.key == apis.API_VERSIONS and head.version not in api.versions:
            await self._write(answer_pieces(api, 0, head.correlation_id, version_not_known()))
            return
        if head.version not in api.versions:
            raise Ended("requests_unknown")
        with ExitStack() as held:  # what the answer takes of the budget, until it was taken
            if head.key == apis.FETCH:
                await self._write(await self._fetched(api, head, frame, held))
            else:
                await self._write(await self._answered(api, head, frame, held))

    async def _fetched(self, api: Api, head: RequestHead, frame: bytes, held: ExitStack) -> Sequence[Buffer]:
        request = self._read(api, head, frame)
        answer = await fetch(self._service, self.client, self._tails, held, request, head.version)
        return answer_pieces(api, head.version, head.correlation_id, answer)

    async def _answered(self, api: Api, head: RequestHead, frame: bytes, held: ExitStack) -> Sequence[Buffer]:
        if api.fate is Fate.FORWARDED:
            try:
                return await forward(self._service, self.client, held, head, frame)
            except LogFormatError:
                raise Ended("requests_malformed") from None
        request = self._read(api, head, frame)
        service, client, version = self._service, self.client, head.version
        answer: object
        match head.key:
            case apis.API_VERSIONS:
                answer = await api_versions(service, client, request, version)
            case apis.METADATA:
                answer = await metadata(service, client, held, request, version)
            case apis.LIST_OFFSETS:
                answer = await list_offsets(service, client, request, version)
            case apis.OFFSET_FOR_LEADER_EPOCH:
                answer = await offset_for_leader_epoch(service, client, request, version)
            case apis.FIND_COORDINATOR:
                answer = await find_coordinator(service, client, request, version)
            case apis.PRODUCE:
                answer = produce(service, request)
            case apis.INIT_PRODUCER_ID:
                answer = init_producer_id(service, request)
            case apis.SASL_HANDSHAKE | apis.SASL_AUTHENTICATE if self._sign_in is not None:
                answer = await self._sign_in.answer(request, version)
            case _:
                raise Ended("requests_unknown")
        if answer is None:
            raise Ended
        return answer_pieces(api, version, head.correlation_id, answer)

    def _read(self, api: Api, head: RequestHead, frame: bytes) -> Any:
        assert api.request is not None
        try:
            return read_message(api.request, head.version, api.is_flexible(head.version), frame, head.body_at)
        except LogFormatError:
            raise Ended("requests_malformed") from None

    async def _write(self, pieces: Sequence[Buffer]) -> None:
        """Hand it over in parts, so that what the client does not take is not copied either."""
        limits, budget = self._limits, self._service.budget
        look_s = min(limits.stalled_s, limits.answer_s)
        began_s = self._moved_s = time.monotonic()
        handing = asyncio.create_task(self._hand_over(pieces))
        try:
            while not (await asyncio.wait([handing], timeout=look_s))[0]:
                now_s = time.monotonic()
                is_late = now_s - began_s >= limits.answer_s
                if is_late or (budget.is_pressed and now_s - self._moved_s >= limits.stalled_s):
                    raise Ended("clients_slow")
            handing.result()
        finally:
            handing.cancel()

    async def _hand_over(self, pieces: Sequence[Buffer]) -> None:
        for piece in pieces:
            view = memoryview(piece)
            for at in range(0, len(view), WRITE_BYTES):
                self._writer.write(view[at : at + WRITE_BYTES])
                await self._writer.drain()
                self._moved_s = time.monotonic()
