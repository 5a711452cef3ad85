"""Who a client is, and what it may read.

    Loopback    anybody on this machine: reads what this service may read
    Certified   by its certificate: READ is looked up in the cluster's ACLs for its principal (DescribeAcls)
    Own         by its own SASL credentials, with which we connect upstream: the brokers themselves say what
                it may (KIP-430), and no identity of ours stands in between

Answers are kept for KEPT_S. What cannot be told is no (fail closed).

Owns the evaluation of ACLs as Kafka's own authorizer does it: DENY before ALLOW, literal and `*` and prefixed
names, hosts and `*`. Refuses what that authorizer knows and ACLs do not show: super users and
`allow.everyone.if.no.acl.found`; such clients are denied.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from tiering.serve.counters import Counters
from tiering.serve.errors import UpstreamAway
from tiering.serve.protocol.apis import APIS, DESCRIBE_ACLS, METADATA
from tiering.serve.protocol.asking import MetadataRequest, MetadataRequestTopic
from tiering.serve.protocol.session import AclResource, DescribeAclsRequest
from tiering.serve.upstream import Upstream

KEPT_S = 30.0
KEPT_MAX = 10_000
ANY, ALL, READ = 1, 2, 3  # operations
DENY, ALLOW = 2, 3
MATCH = 2  # pattern type of a filter: literal, `*` and prefixed ones that fit the name
TOPIC, GROUP = 2, 3  # resource types
SECURITY_DISABLED = 54  # the cluster has no authorizer: everybody may do everything there
READ_BIT = 1 << READ


class Who(Protocol):
    """A client, once it is known."""

    principal: str
    settings: Mapping[str, str]  # as whom we connect upstream for it

    async def may_read(self, topic: str) -> bool: ...

    async def may_join(self, group: str) -> bool: ...


class Loopback:
    """Whoever is on this machine."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.principal = "loopback"
        self.settings = settings

    async def may_read(self, topic: str) -> bool:
        return True

    async def may_join(self, group: str) -> bool:
        return True


class Kept:
    """Answers to yes-or-no questions, for a while; a question that fails is answered no, and not kept."""

    def __init__(self, counters: Counters, clock: Callable[[], float] = time.monotonic) -> None:
        self._counters = counters
        self._answers: OrderedDict[tuple[Any, ...], tuple[float, bool]] = OrderedDict()
        self._clock = clock

    async def of(self, key: tuple[Any, ...], ask: Callable[[], Awaitable[bool]]) -> bool:
        told_s, answer = self._answers.get(key, (-KEPT_S, False))
        if self._clock() - told_s < KEPT_S:
            return answer
        try:
            answer = await ask()
        except (UpstreamAway, asyncio.TimeoutError):
            return False
        self._answers[key] = (self._clock(), answer)
        self._answers.move_to_end(key)
        while len(self._answers) > KEPT_MAX:
            self._answers.popitem(last=False)
            self._counters.count("forgotten")
        return answer


class Certified:
    """A client by its certificate. `ask` gives a connection that may DescribeAcls; `kept` is shared."""

    def __init__(
        self,
        principal: str,
        host: str,
        settings: Mapping[str, str],
        ask: Callable[[], Awaitable[Upstream]],
        kept: Kept,
    ) -> None:
        self.principal = principal
        self.settings = settings
        self._host = host
        self._ask = ask
        self._kept = kept

    async def may_read(self, topic: str) -> bool:
        return await self._may(TOPIC, topic)

    async def may_join(self, group: str) -> bool:
        return await self._may(GROUP, group)

    async def _may(self, resource_type: int, name: str) -> bool:
        async def ask() -> bool:
            upstream = await self._ask()
            request = DescribeAclsRequest(
                resource_type_filter=resource_type,
                resource_name_filter=name,
                pattern_type_filter=MATCH,
                operation=ANY,
                permission_type=ANY,
            )
            answer = await upstream.ask(APIS[DESCRIBE_ACLS], request)
            if answer.error_code == SECURITY_DISABLED:
                return True
            return answer.error_code == 0 and allows(answer.resources, self.principal, self._host)

        return await self._kept.of((self.principal, self._host, resource_type, name), ask)


def allows(resources: Iterable[AclResource], principal: str, host: str) -> bool:
    """Whether ACLs that fit a name let a principal read it."""
    fitting = [
        acl
        for resource in resources
        for acl in resource.acls
        if acl.principal in (principal, "User:*") and acl.host in (host, "*") and acl.operation in (READ, ALL)
    ]
    if any(acl.permission_type == DENY for acl in fitting):
        return False
    return any(acl.permission_type == ALLOW for acl in fitting)


class Own:
    """A client with credentials of its own. `ask` gives a connection upstream that was made with them."""

    def __init__(
        self, principal: str, settings: Mapping[str, str], ask: Callable[[], Awaitable[Upstream]], kept: Kept
    ) -> None:
        self.principal = principal
        self.settings = settings
        self._ask = ask
        self._kept = kept

    async def may_read(self, topic: str) -> bool:
        async def ask() -> bool:
            upstream = await self._ask()
            request = MetadataRequest(
                topics=(MetadataRequestTopic(name=topic),),
                allow_auto_topic_creation=False,
                include_topic_authorized_operations=True,
            )
            answer = await upstream.ask(APIS[METADATA], request)
            operations = [each.topic_authorized_operations for each in answer.topics if each.error_code == 0]
            return any(each > 0 and bool(each & READ_BIT) for each in operations)

        return await self._kept.of((topic,), ask)

    async def may_join(self, group: str) -> bool:
        return True  # the coordinator asks its authorizer: the connection is the client's own


# As X500Principal.getName() has it, which Kafka's default principal is made of (RFC 2253).
_KEYWORDS = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_ESCAPED = ',+"\\<>;'


def principal_of(subject: Sequence[Sequence[tuple[str, str]]]) -> str | None:
    """Kafka's principal of a certificate's subject; None where it has what has no keyword there."""
    names = []
    for relative in reversed(subject):
        parts = []
        for attribute, value in relative:
            if attribute not in _KEYWORDS:
                return None
            parts.append(f"{_KEYWORDS[attribute]}={_escaped(value)}")
        names.append("+".join(parts))
    return "User:" + ",".join(names) if names else None


def _escaped(value: str) -> str:
    text = "".join(f"\\{each}" if each in _ESCAPED else each for each in value)
    if text[:1] in (" ", "#"):
        text = "\\" + text
    return text[:-1] + "\\ " if text.endswith(" ") and not text.endswith("\\ ") else text
