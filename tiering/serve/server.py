"""The endpoint: listens, takes clients as far as the limits go, and lets them finish when it is to stop.

It listens on one port for each node that it shows: librdkafka takes two brokers at one address for one
(`rd_kafka_broker_update`), and clients have one fetch under way for each broker, so that with several the
tail of one partition and the history of another need not wait for each other.

Owns the sockets and the clients' tasks. Refuses to be reached from elsewhere where nothing tells who reads
(`Exposed`). Invariant: what goes wrong with one client ends that client's connection, and nothing else.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tiering.serve.client import Client
from tiering.serve.connection import Connection
from tiering.serve.errors import Exposed, ListenRefused, ServeError
from tiering.serve.sasl import SignIn
from tiering.serve.service import Service
from tiering.serve.upstream import Address
from tiering.serve.who import Certified, Kept, Loopback, Who, principal_of

READ_AHEAD_BYTES = 64 * 1024
BACKLOG = 256
DRAIN_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How it is told who a client is."""

    tls: ssl.SSLContext | None = None
    asks_certificates: bool = False
    sasl: bool = False
    is_trusted_network: bool = False  # for tests: take whoever comes for somebody on this machine


def tls_context(certificate: str, key: str, client_authority: str | None) -> ssl.SSLContext:
    """TLS as a server, asking for certificates of `client_authority` if there is one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        if client_authority is not None:
            context.load_verify_locations(client_authority)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ValueError) as refused:
        raise ServeError(why=f"its certificates cannot be used: {refused}") from refused
    return context


class _Protocol(asyncio.StreamReaderProtocol):
    """A client's stream, whose task ends with it: nobody waits upstream for a client that has gone."""

    def __init__(self, take: Callable[..., asyncio.Task[None] | None]) -> None:
        loop = asyncio.get_running_loop()
        self._running: asyncio.Task[None] | None = None
        self._take = take
        super().__init__(asyncio.StreamReader(limit=READ_AHEAD_BYTES, loop=loop), self._taken, loop=loop)

    def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._running = self._take(reader, writer)

    def eof_received(self) -> bool:
        super().eof_received()
        return False  # no Kafka client closes one half

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._running is not None:
            self._running.cancel()


class Server:
    """For one event loop. `on_defect` is told of what should never happen."""

    def __init__(
        self,
        service: Service,
        access: Access,
        settings: Mapping[str, str],
        *,
        on_defect: Callable[[Exception], None],
    ) -> None:
        self._service = service
        self._access = access
        self._settings = dict(settings)
        self._on_defect = on_defect
        self._kept = Kept(service.counters)
        self._listening: list[asyncio.Server] = []
        self._clients: dict[asyncio.Task[None], Connection] = {}
        self._hosts: Counter[str] = Counter()
        self._is_draining = False

    @property
    def client_count(self) -> int:
        return len(self._clients)

    async def start(self, bound: Sequence[socket.socket]) -> None:
        """Take clients on these sockets."""
        loop = asyncio.get_running_loop()
        for listening in bound:
            made = await loop.create_server(
                lambda: _Protocol(self._take), sock=listening, ssl=self._access.tls, backlog=BACKLOG
            )
            self._listening.append(made)

    async def drain(self, grace_s: float = DRAIN_S) -> None:
        """Take no more clients, let each have the answer it waits for, and end all when the time is up."""
        self._is_draining = True
        for listening in self._listening:
            listening.close()
        waiting = {task for task, connection in self._clients.items() if not connection.is_idle}
        for task in set(self._clients) - waiting:
            task.cancel()
        if waiting:
            for task in waiting:
                self._clients[task].is_last_answer = True
            await asyncio.wait(waiting, timeout=grace_s)
        left = list(self._clients)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=1.0)

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> asyncio.Task[None] | None:
        limits, counters = self._service.limits, self._service.counters
        host = str((writer.get_extra_info("peername") or ("?",))[0])
        is_full = len(self._clients) >= limits.connections_max
        if self._is_draining or is_full or self._hosts[host] >= limits.connections_per_host_max:
            counters.count("connections_refused")
            writer.transport.abort()
            return None
        counters.count("connections")
        who = self._who(writer, host)
        if who is None and not self._access.sasl:
            counters.count("reads_denied")
            writer.transport.abort()
            return None
        connection = Connection(
            self._service, reader, writer, who=who, sign_in=self._sign_in if self._access.sasl else None
        )
        task = asyncio.create_task(self._serve(connection))
        self._clients[task] = connection
        self._hosts[host] += 1
        task.add_done_callback(lambda ended: self._ended(ended, host))
        return task

    async def _serve(self, connection: Connection) -> None:
        try:
            await connection.serve()
        except Exception as defect:  # noqa: BLE001 the worker's edge: the others go on
            self._service.counters.count("defects")
            self._on_defect(defect)

    def _ended(self, task: asyncio.Task[None], host: str) -> None:
        self._clients.pop(task).close()
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    def _sign_in(self, client: Client) -> SignIn:
        return SignIn(client, self._service.cluster, self._service.counters, self._settings)

    def _who(self, writer: asyncio.StreamWriter, host: str) -> Who | None:
        """None where it is not known, yet or at all."""
        if self._access.sasl:
            return None
        if self._access.asks_certificates:
            certificate = writer.get_extra_info("peercert") or {}
            principal = principal_of(certificate.get("subject", ()))
            if principal is None:
                return None
            return Certified(principal, host, self._settings, self._service.cluster.any_own, self._kept)
        return Loopback(self._settings) if self._access.is_trusted_network or is_loopback(host) else None


def is_loopback(host: str) -> bool:
    """Whether a host is this machine alone; of a name that is not `localhost` it cannot be told."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def check_exposed(listen: Address, access: Access) -> None:
    """Raise Exposed where anybody could read with this service's permissions."""
    if not (access.asks_certificates or access.sasl or is_loopback(listen.host)):
        why = "neither client certificates nor SASL are asked for"
        raise Exposed(address=str(listen), why=why)


def bind(listen: Address, nodes: int) -> list[socket.socket]:
    """A socket for each node: consecutive ports, or any that are free for port 0."""
    bound: list[socket.socket] = []
    try:
        for number in range(nodes):
            port = listen.port + number if listen.port else 0
            family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
            bound.append(socket.create_server((listen.host, port), family=family, backlog=BACKLOG))
    except OSError as refused:
        for each in bound:
            each.close()
        raise ListenRefused(address=str(listen), why=refused.strerror or str(refused)) from refused
    return bound
