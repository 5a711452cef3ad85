"""A connection of ours to one real broker, on which requests are asked or forwarded in turn.

Answers come in the order of requests, as brokers give them. `settings` are librdkafka's names for how to
reach a cluster and as whom; what they mean for a socket is `cluster.quorum.security`'s.

An answer for a client takes room of the `budget` before it is read, so that what clients do not take stays
with the broker. Those that the service asks for itself are small, and take none.

Owns one socket and who waits on it. Refuses answers longer than ANSWER_BYTES_MAX. What goes wrong with the
connection ends it, for all who wait: UpstreamAway; they open another.

Invariant: an answer reaches the one who asked for it, or nobody.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections import deque
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from tiering.cluster.quorum.errors import Unaskable
from tiering.cluster.quorum.security import dialogue_of, mechanism_of, tls_of
from tiering.log.errors import LogFormatError
from tiering.log.wire import Buffer
from tiering.serve.budget import Budget
from tiering.serve.errors import UpstreamAway, UpstreamRefuses
from tiering.serve.protocol.apis import API_VERSIONS, APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from tiering.serve.protocol.frames import (
    CORRELATION_AT,
    LENGTH,
    read_answer,
    request_frame,
    with_correlation,
)
from tiering.serve.protocol.session import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

CLIENT_ID = "seawall-serve"
ANSWER_BYTES_MAX = 128 * 1024 * 1024  # a batch may be as large as its topic allows
READ_AHEAD_BYTES = 64 * 1024  # twice that, and what the socket gives at once, is read before there is room
OPEN_TIMEOUT_S = 10.0
ASK_TIMEOUT_S = 20.0


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Answered(NamedTuple):
    """An answer, and the room that it takes until `held` is closed."""

    content: bytes
    held: ExitStack


class Upstream:
    """Opened, authenticated and ready when `open_upstream` gives it."""

    def __init__(
        self,
        address: Address,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        budget: Budget | None = None,
    ) -> None:
        self.address = address
        self._budget = budget
        self.versions: Mapping[int, range] = {}
        self.features: ApiVersionsResponse | None = None
        self._reader, self._writer = reader, writer
        self._correlations = itertools.count(1)
        self._waiting: deque[tuple[int, asyncio.Future[Answered]]] = deque()
        self._failure: UpstreamAway | None = None
        self._receiving = asyncio.create_task(self._receive())

    @property
    def is_closed(self) -> bool:
        return self._failure is not None

    def version_of(self, api: Api) -> int:
        """The newest version that the broker and these tables both know."""
        offered = self.versions.get(api.key, range(0))
        both = [each for each in api.versions if each in offered]
        if not both:
            why = f"it takes {api.name} in no version that is known here"
            raise UpstreamRefuses(address=str(self.address), why=why)
        return both[-1]

    async def ask(
        self,
        api: Api,
        request: Any,
        *,
        version: int | None = None,
        timeout_s: float = ASK_TIMEOUT_S,
        held: ExitStack | None = None,
    ) -> Any:
        """The answer, read by its table. What room it takes is given back with `held`, or at once."""
        chosen = self.version_of(api) if version is None else version
        correlation_id = next(self._correlations) & 0x7FFFFFFF
        frame = request_frame(api, chosen, correlation_id, CLIENT_ID, request)
        answer = await self._send(frame, correlation_id, timeout_s)
        with ExitStack() as ours:
            (ours if held is None else held).callback(answer.held.close)
            try:
                return read_answer(api, chosen, answer.content)
            except LogFormatError as broken:
                raise self._ended(f"its answer to {api.name} cannot be read: {broken}") from broken

    async def forward(self, frame: Buffer, *, timeout_s: float, held: ExitStack) -> bytes:
        """A client's request, unread; and its answer, whose first four bytes are our own id of it."""
        correlation_id = next(self._correlations) & 0x7FFFFFFF
        ours = with_correlation(frame, CORRELATION_AT, correlation_id)
        answer = await self._send(LENGTH.pack(len(ours)) + ours, correlation_id, timeout_s)
        held.callback(answer.held.close)
        return answer.content

    def close(self) -> None:
        self._ended("it was closed")

    async def _send(self, frame: bytes | bytearray, correlation_id: int, timeout_s: float) -> Answered:
        if self._failure is not None:
            raise self._failure
        answered: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting.append((correlation_id, answered))
        self._writer.write(frame)
        try:
            return await asyncio.wait_for(answered, timeout_s)
        except asyncio.TimeoutError:  # what comes later would be taken for the next one's
            _give_back(answered)
            raise self._ended(f"nothing came for {timeout_s:g} s") from None
        except asyncio.CancelledError:
            _give_back(answered)
            raise

    async def _receive(self) -> None:
        try:
            while True:
                [size] = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                if not LENGTH.size <= size <= ANSWER_BYTES_MAX:
                    raise self._ended(f"it claims an answer of {size} bytes")
                with ExitStack() as held:
                    if self._budget is not None:
                        held.callback((await self._budget.take(size)).give_back)
                    self._hand_over(await self._reader.readexactly(size), held)
        except asyncio.IncompleteReadError:
            self._ended("it ended the connection")
        except OSError as broken:
            self._ended(str(broken))
        except UpstreamAway:
            pass  # said already to all who wait

    def _hand_over(self, content: bytes, held: ExitStack) -> None:
        """To the one who asked; where nobody waits any more the room is given back."""
        [found] = LENGTH.unpack_from(content, 0)
        correlation_id, answered = self._waiting.popleft() if self._waiting else (-1, None)
        if answered is None or found != correlation_id:
            raise self._ended(f"it answers request {found}, not {correlation_id}")
        if not answered.done():
            answered.set_result(Answered(content, held.pop_all()))

    def _ended(self, why: str) -> UpstreamAway:
        """Close, and tell all who wait; the error is for whoever noticed."""
        if self._failure is None:
            self._failure = UpstreamAway(address=str(self.address), why=why)
            self._writer.transport.abort()
            for _, answered in self._waiting:
                if not answered.done():
                    answered.set_exception(self._failure)
                    answered.exception()  # a waiter that is gone already is no news
            self._waiting.clear()
            if asyncio.current_task() is not self._receiving:
                self._receiving.cancel()
        return UpstreamAway(address=str(self.address), why=why)


def _give_back(answered: asyncio.Future[Answered]) -> None:
    """It may have come in the moment in which its asker went."""
    if answered.done() and not answered.cancelled() and answered.exception() is None:
        answered.result().held.close()


async def open_upstream(
    address: Address,
    settings: Mapping[str, str],
    *,
    timeout_s: float = OPEN_TIMEOUT_S,
    budget: Budget | None = None,
) -> Upstream:
    """Connect, authenticate, and ask which requests the broker knows."""
    try:
        return await asyncio.wait_for(_opened(address, settings, budget), timeout_s)
    except asyncio.TimeoutError:
        raise UpstreamAway(address=str(address), why=f"nothing came for {timeout_s:g} s") from None
    except (Unaskable, ssl.SSLError) as refused:
        raise UpstreamRefuses(address=str(address), why=str(refused)) from refused
    except OSError as broken:
        raise UpstreamAway(address=str(address), why=str(broken)) from broken


async def _opened(address: Address, settings: Mapping[str, str], budget: Budget | None) -> Upstream:
    tls, mechanism = tls_of(settings), mechanism_of(settings)
    reader, writer = await asyncio.open_connection(
        address.host,
        address.port,
        ssl=tls,
        server_hostname=address.host if tls is not None else None,
        limit=READ_AHEAD_BYTES,
    )
    upstream = Upstream(address, reader, writer, budget)
    try:
        if mechanism is not None:
            await _authenticate(upstream, settings, mechanism)
        found = await upstream.ask(APIS[API_VERSIONS], ApiVersionsRequest(), version=0)
        offered = {each.api_key: range(each.min_version, each.max_version + 1) for each in found.api_keys}
        upstream.versions = offered
        if API_VERSIONS in offered and offered[API_VERSIONS].stop > 3:
            me = ApiVersionsRequest(client_software_name="seawall", client_software_version="1")
            found = await upstream.ask(APIS[API_VERSIONS], me)
        upstream.features = found
    except BaseException:
        upstream.close()
        raise
    return upstream


async def _authenticate(upstream: Upstream, settings: Mapping[str, str], mechanism: str) -> None:
    """In the older forms, which every broker takes (KIP-43)."""
    shaken = await upstream.ask(APIS[SASL_HANDSHAKE], SaslHandshakeRequest(mechanism=mechanism), version=1)
    if shaken.error_code != 0:
        raise Unaskable(f"the broker takes {', '.join(shaken.mechanisms) or 'no SASL'}, not {mechanism}")
    dialogue = dialogue_of(settings, mechanism)
    saying = await asyncio.to_thread(next, dialogue)  # it may have to ask for a token first
    with suppress(StopIteration):
        while True:
            said = await upstream.ask(
                APIS[SASL_AUTHENTICATE], SaslAuthenticateRequest(auth_bytes=saying), version=0
            )
            if said.error_code != 0:
                why = said.error_message or f"error {said.error_code}"
                raise Unaskable(f"the broker refuses the credentials: {why}")
            saying = dialogue.send(said.auth_bytes)
