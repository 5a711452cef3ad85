"""Groups: whoever asks who coordinates one is told that we do, and what it then says is passed on unread.

The answer to FindCoordinator names us; which broker it really is, is remembered by group for all clients, as
the lookup and what follows come over different connections. Of what is passed on only the group's name is
looked at, and of some answers the error code: whether the coordinator is another by now.

Owns that memory (`coordinators`). Refuses transactions: their coordinators are writers' business.
"""

from __future__ import annotations

from contextlib import ExitStack

from tiering.log import wire
from tiering.log.wire import Buffer
from tiering.serve.client import Client
from tiering.serve.errors import UpstreamAway
from tiering.serve.protocol.apis import APIS, ERROR_BEHIND_THROTTLE, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP
from tiering.serve.protocol.codes import COORDINATOR_MOVED, Code
from tiering.serve.protocol.frames import CORRELATION_AT, LENGTH, RequestHead, group_of
from tiering.serve.protocol.session import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from tiering.serve.service import NODE_IDS_FROM, Service
from tiering.serve.upstream import Address

KEYS_MAX = 1000  # groups_put_off: of one FindCoordinator
REBALANCE_S = 1900.0  # a JoinGroup is answered when all have joined: max.poll.interval.ms, and more
FORWARD_S = 60.0
GROUP = 0  # a key's type
READ_ONLY = "this endpoint only reads (seawall serve): write to the brokers"


async def find_coordinator(
    service: Service, client: Client, request: FindCoordinatorRequest, version: int
) -> FindCoordinatorResponse:
    """Us, if there is one; else what the brokers say of why there is none.

    Of those beyond KEYS_MAX that there is none now: who asks for them again asks for them alone.
    """
    keys = request.coordinator_keys if version >= 4 else (request.key,)
    found = [await _found(service, client, key, request.key_type) for key in keys[:KEYS_MAX]]
    for key in keys[KEYS_MAX:]:
        service.counters.count("groups_put_off")
        found.append(Coordinator(key=key, error_code=Code.COORDINATOR_NOT_AVAILABLE))
    if version >= 4:
        return FindCoordinatorResponse(coordinators=tuple(found))
    [one] = found
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _found(service: Service, client: Client, key: str, key_type: int) -> Coordinator:
    if key_type != GROUP:
        service.counters.count("writes_refused")
        return Coordinator(
            key=key, error_code=Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, error_message=READ_ONLY
        )
    assert client.who is not None
    if not await client.who.may_join(key):
        service.counters.count("reads_denied")
        return Coordinator(key=key, error_code=Code.GROUP_AUTHORIZATION_FAILED)
    code, message = await _look_up(service, client, key)
    if code != Code.NONE:
        return Coordinator(key=key, error_code=code, error_message=message)
    us = service.nodes[0]
    return Coordinator(key=key, node_id=NODE_IDS_FROM, host=us.host, port=us.port, error_code=Code.NONE)


async def _look_up(service: Service, client: Client, group: str) -> tuple[int, str | None]:
    """Ask the brokers, and remember; the error code, and what they say of it."""
    upstream = await client.any_upstream()
    api = APIS[FIND_COORDINATOR]
    chosen = upstream.version_of(api)
    asked = FindCoordinatorRequest(key=group, coordinator_keys=(group,))
    answer: FindCoordinatorResponse = await upstream.ask(api, asked, version=chosen)
    one: Coordinator | FindCoordinatorResponse = answer
    if chosen >= 4:
        if len(answer.coordinators) != 1:
            return Code.COORDINATOR_NOT_AVAILABLE, None
        one = answer.coordinators[0]
    if one.error_code == Code.NONE:
        service.coordinators.learn(group, Address(one.host, one.port))
    else:
        service.coordinators.forget(group)
    return one.error_code, one.error_message


async def forward(
    service: Service, client: Client, held: ExitStack, head: RequestHead, frame: Buffer
) -> list[Buffer]:
    """The coordinator's own answer, unread. Raises UpstreamAway where it cannot be had."""
    group = group_of(head, frame)
    assert client.who is not None
    if not await client.who.may_join(group):
        service.counters.count("reads_denied")
        raise UpstreamAway(address="-", why=f"{client.who.principal} may not join {group}")
    address = service.coordinators.of(group)
    if address is None:
        await _look_up(service, client, group)
        address = service.coordinators.of(group)
    if address is None:
        raise UpstreamAway(address="-", why=f"no broker coordinates {group} now")
    service.counters.count("forwarded")
    timeout_s = REBALANCE_S if head.key in (JOIN_GROUP, SYNC_GROUP) else FORWARD_S
    try:
        upstream = await client.upstream(address)
        answer = await upstream.forward(frame, timeout_s=timeout_s, held=held)
    except UpstreamAway:
        service.coordinators.forget(group)
        raise
    if _has_moved(head, answer):
        service.coordinators.forget(group)
    theirs = frame[CORRELATION_AT : CORRELATION_AT + LENGTH.size]
    return [LENGTH.pack(len(answer)), theirs, memoryview(answer)[LENGTH.size :]]


def _has_moved(head: RequestHead, answer: Buffer) -> bool:
    """Whether the answer says that another broker coordinates the group; no where that cannot be seen."""
    if head.version < ERROR_BEHIND_THROTTLE.get(head.key, 32767):
        return False
    position = LENGTH.size
    if APIS[head.key].answer_has_tags(head.version):
        _, position = wire.read_tagged_fields(answer, position)
    error, _ = wire.read_int16(answer, position + 4)
    return error in COORDINATOR_MOVED
