"""Kafka's rules of who may read: ACLs as its authorizer evaluates them, principals as it names them."""

from __future__ import annotations

import asyncio

import pytest

from tests.tiering.serve.broker import Partition
from tests.tiering.serve.scene import a_log, staged
from tests.tiering.serve.test_seam import tiered
from tiering.serve.counters import Counters
from tiering.serve.errors import UpstreamAway
from tiering.serve.protocol.session import Acl, AclResource
from tiering.serve.upstream import Upstream
from tiering.serve.who import ALL, ALLOW, DENY, KEPT_S, READ, TOPIC, Certified, Kept, allows, principal_of

ME, HERE = "User:CN=me", "10.0.0.7"
WRITE = 4


def acl(principal: str, permission: int, *, host: str = "*", operation: int = READ) -> AclResource:
    one = Acl(principal=principal, host=host, operation=operation, permission_type=permission)
    return AclResource(resource_type=TOPIC, resource_name="orders", acls=(one,))


@pytest.mark.parametrize(
    ("acls", "may"),
    [
        ([], False),
        ([acl(ME, ALLOW)], True),
        ([acl("User:*", ALLOW)], True),
        ([acl(ME, ALLOW, operation=ALL)], True),
        ([acl(ME, ALLOW, operation=WRITE)], False),
        ([acl("User:CN=you", ALLOW)], False),
        ([acl(ME, ALLOW, host=HERE)], True),
        ([acl(ME, ALLOW, host="10.0.0.8")], False),
        ([acl(ME, ALLOW), acl(ME, DENY)], False),
        ([acl(ME, ALLOW), acl("User:*", DENY, operation=ALL)], False),
        ([acl(ME, ALLOW), acl(ME, DENY, host="10.0.0.8")], True),
        ([acl(ME, ALLOW), acl(ME, DENY, operation=WRITE)], True),
    ],
)
def test_acls_are_evaluated_as_kafka_does(acls: list[AclResource], may: bool) -> None:
    """DENY before ALLOW, ALL holds READ, `*` is everybody and everywhere, and nothing said is no."""
    assert allows(acls, ME, HERE) is may


@pytest.mark.parametrize(
    ("subject", "principal"),
    [
        ([], None),
        ([[("commonName", "me")]], "User:CN=me"),
        (
            [[("countryName", "DE")], [("organizationName", "Sea, Wall")], [("commonName", "me")]],
            "User:CN=me,O=Sea\\, Wall,C=DE",
        ),
        ([[("commonName", "a"), ("userId", "b")]], "User:CN=a+UID=b"),
        ([[("commonName", "#a ")]], "User:CN=\\#a\\ "),
        ([[("emailAddress", "a@b")], [("commonName", "me")]], None),
    ],
)
def test_a_subject_is_named_as_kafka_names_it(
    subject: list[list[tuple[str, str]]], principal: str | None
) -> None:
    """RFC 2253, from the last to the first, escaped; what has no keyword there is nobody."""
    assert principal_of(subject) == principal


def test_what_cannot_be_told_is_no_and_is_asked_again() -> None:
    """A cluster that does not answer, or refuses, lets nobody read; one without an authorizer everybody."""
    log = a_log(4)
    with staged(Partition(log), tiered(log, 0, 2)) as scene:
        own = scene.endpoints[0].service.cluster.any_own

        def may(kept: Kept) -> bool:
            return scene.run(Certified(ME, HERE, {}, own, kept).may_read("orders"))

        async def away() -> Upstream:
            raise UpstreamAway(address="-", why="a test")

        assert not may(Kept(Counters()))
        scene.world.acl_error = 31
        assert not may(Kept(Counters()))
        scene.world.acl_error = 54
        assert may(Kept(Counters()))
        scene.world.acl_error, scene.world.acls = 0, (acl(ME, ALLOW),)
        kept = Kept(Counters())
        assert not scene.run(Certified(ME, HERE, {}, away, kept).may_read("orders"))
        assert may(kept)


def test_an_answer_is_kept_for_a_while() -> None:
    """Asked once, and again when the time is up."""
    now = [1000.0]
    kept = Kept(Counters(), clock=lambda: now[0])
    asked = []

    async def ask() -> bool:
        asked.append(now[0])
        return True

    async def work() -> None:
        for step in (0.0, KEPT_S / 2, KEPT_S / 2):
            now[0] += step
            assert await kept.of(("key",), ask)

    asyncio.run(work())
    assert len(asked) == 2
