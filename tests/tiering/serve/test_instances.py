"""Clients that move between instances, groups that are forwarded, topics made anew, credentials passed on."""

from __future__ import annotations

import struct

import pytest

from tests.tiering.serve.broker import TOPIC, Partition, World
from tests.tiering.serve.scene import TIERED, a_log, fetched, next_offset, read_all, staged
from tests.tiering.serve.test_seam import contents, listed, tiered
from tests.tiering.serve.wire import HungUp, WireClient
from tiering.log.wire import Uuid
from tiering.serve.protocol import apis
from tiering.serve.protocol.asking import (
    MetadataRequest,
    MetadataRequestTopic,
)
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.session import (
    FindCoordinatorRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tiering.serve.server import Access
from tiering.serve.service import NODE_IDS_FROM


def test_a_consumer_may_move_between_instances() -> None:
    """Each fetch by way of another instance, as a balancer may have it: each batch once."""
    log = a_log(30)
    with staged(Partition(log, local_start=20), tiered(log, 0, 7, 20), endpoints=2) as scene:
        clients = [WireClient(str(endpoint.nodes[0])) for endpoint in scene.endpoints]
        found, offset, turn = b"", 0, 0
        while offset < log.end:
            data = fetched(clients[turn % 2], offset, partition_max_bytes=300)
            content = b"".join(data.records or ())
            found, offset, turn = found + content, next_offset(content), turn + 1
        for client in clients:
            client.close()
        assert found == contents(log)
        assert turn > 4


def test_a_group_is_forwarded_unread_by_whichever_instance() -> None:
    """The coordinator is looked up where it is not known, and again when it says that it is none."""
    log = a_log(4)
    heartbeat = struct.pack(">hhih", apis.HEARTBEAT, 4, 9, 2) + b"me\0" + b"\x06group" + b"anything"
    with staged(Partition(log), tiered(log, 0, 2), brokers=2) as scene, scene.client() as client:
        scene.world.coordinator = 2
        asked = FindCoordinatorRequest(key="group", coordinator_keys=("group",))
        [found] = client.ask(apis.FIND_COORDINATOR, 4, asked).coordinators
        assert (found.host, found.port) == scene.endpoints[0].nodes[0]
        assert found.node_id == NODE_IDS_FROM
        scene.world.group_answer = b"\0" + struct.pack(">ih", 0, Code.NOT_COORDINATOR) + b"rest"
        for _ in range(2):
            client.send(struct.pack(">i", len(heartbeat)) + heartbeat)
            assert client.receive() == struct.pack(">i", 9) + scene.world.group_answer
            scene.world.coordinator = 1
        told = [broker for broker, name, _ in scene.world.asked if name == "Heartbeat"]
        assert told == [2, 1]


def test_transactions_have_no_coordinator_here() -> None:
    log = a_log(4)
    with staged(Partition(log), tiered(log, 0, 2)) as scene, scene.client() as client:
        asked = FindCoordinatorRequest(key="tx", key_type=1, coordinator_keys=("tx",))
        [found] = client.ask(apis.FIND_COORDINATOR, 4, asked).coordinators
        assert found.error_code == Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert client.ask(apis.FIND_COORDINATOR, 3, asked).node_id == -1


def test_a_topic_made_anew_is_another_topic() -> None:
    """Asked for by the id that it had, it is unknown; by its name, nothing of the old one's is given."""
    log, anew = a_log(20), a_log(3)
    partition = Partition(log)
    with staged(partition, tiered(log, 0, 12)) as scene, scene.client() as client:
        assert fetched(client, 0).error_code == Code.NONE
        scene.world.topic_id = Uuid("3cVtEW_RTm2TSqxDBnRsEA")
        scene.world.partitions[TIERED] = Partition(anew)
        client.ask(apis.METADATA, 12, MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)))
        assert fetched(client, 0).error_code == Code.UNKNOWN_TOPIC_ID
        assert b"".join(fetched(client, 0, version=12).records or ()) == contents(anew)


def signed_in(client: WireClient, user: str, password: str) -> int:
    shaken = client.ask(apis.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    assert (shaken.error_code, shaken.mechanisms) == (Code.NONE, ("PLAIN",))
    said = SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode())
    code: int = client.ask(apis.SASL_AUTHENTICATE, 2, said).error_code
    return code


def test_credentials_are_passed_on_and_decide_what_is_read() -> None:
    """Every request of a client reaches brokers under its own name; READ decides of the store as well."""
    log = a_log(20)

    def users(world: World) -> None:
        world.users = {"serve": "s", "alice": "a", "mallory": "m"}
        world.readers = frozenset({"alice"})

    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
    with staged(
        Partition(log, local_start=20),
        tiered(log, 0, 12),
        before=users,
        access=Access(sasl=True),
        settings={**login, "sasl.username": "serve", "sasl.password": "s"},
    ) as scene:
        with scene.client() as client:
            assert signed_in(client, "alice", "a") == Code.NONE
            assert read_all(client, 0, log.end) == contents(log)
        with scene.client() as client:
            assert signed_in(client, "mallory", "m") == Code.NONE
            for offset in (0, 30):
                data = fetched(client, offset)
                assert data.error_code == Code.TOPIC_AUTHORIZATION_FAILED
                assert not b"".join(data.records or ())
            assert listed(client, -2).error_code == Code.TOPIC_AUTHORIZATION_FAILED
        with scene.client() as client:
            assert signed_in(client, "alice", "wrong") == Code.SASL_AUTHENTICATION_FAILED
            with pytest.raises(HungUp):
                fetched(client, 0)
        with scene.client() as client:
            other = client.ask(apis.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="SCRAM-SHA-512"))
            assert other.error_code == Code.UNSUPPORTED_SASL_MECHANISM
        assert {user for _, name, user in scene.world.asked if name == "Fetch"} == {"alice"}
