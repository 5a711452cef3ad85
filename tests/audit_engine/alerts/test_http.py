"""The network: what is connected to, what is not, and that nothing takes longer than it may."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from audit_engine.alerts.addresses import allowed, is_public
from audit_engine.alerts.endpoints import Endpoint
from audit_engine.alerts.http import BODY_BYTES, SHOWN_CHARS, HttpTransport, resolved
from audit_engine.alerts.transport import Answer, NoAnswer, Request
from tests.audit_engine.alerts import receiver as at
from tests.audit_engine.alerts.news import endpoint
from tests.audit_engine.alerts.receiver import receiver
from tests.tiering.cluster.quorum.test_client import certificates

PUBLIC = "93.184.216.34"


def post(target: Endpoint, resolve: Callable[[str, int], Sequence[str]] = resolved) -> Answer | NoAnswer:
    request = Request(url=target.url, headers={"X-Own": "1"}, body=b"{}")
    return HttpTransport(resolve=resolve).post(target, request)


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
        *("224.0.0.1", "255.255.255.255", "198.51.100.1", "240.0.0.1"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::"),
        *("2001:0:7f00:1::", "not an address", ""),
    ],
)
def test_what_is_near_is_private(text: str) -> None:
    """Loopback, networks of one's own, links, a cloud's metadata, whatever they are wrapped in."""
    assert not is_public(text)


@pytest.mark.parametrize("text", [PUBLIC, "2606:4700:4700::1111", f"::ffff:{PUBLIC}", "64:ff9b::5db8:d822"])
def test_what_is_of_the_internet_is_public(text: str) -> None:
    """Those may be connected to, with TLS."""
    assert is_public(text)
    assert allowed([text], is_private_allowed=False, has_tls=True) == [text]
    assert allowed([text], is_private_allowed=True, has_tls=False) == []


def test_a_private_address_is_not_connected_to() -> None:
    """Unless the endpoint allows it: nothing arrives, and it is said why."""
    with receiver() as receiving:
        refused = post(replace(endpoint(receiving.url), is_private_allowed=False))
        taken = post(endpoint(receiving.url))

    assert isinstance(refused, NoAnswer)
    assert refused.is_refused_here
    assert isinstance(taken, Answer)
    assert len(receiving.came) == 1
    assert receiving.came[0].headers["host"] == f"127.0.0.1:{receiving.port}"


def test_the_address_that_was_judged_is_the_one_that_is_connected_to() -> None:
    """A name that answers otherwise the second time (DNS rebinding) is not asked a second time."""
    asked: list[str] = []
    with receiver() as receiving:

        def resolve(host: str, _: int) -> list[str]:
            asked.append(host)
            return ["127.0.0.1"] if len(asked) == 1 else ["10.255.255.1"]

        target = endpoint(f"http://rebinding.example:{receiving.port}/hooks/seawall")
        answer = post(target, resolve=resolve)

    assert isinstance(answer, Answer)
    assert asked == ["rebinding.example"]
    assert receiving.came[0].headers["host"].startswith("rebinding.example:")


def test_a_public_name_that_leads_home_is_refused() -> None:
    """Of several addresses only the public ones count, and where there is none nothing is sent."""
    with receiver() as receiving:
        target = replace(endpoint(f"https://hooks.example.com:{receiving.port}/"), is_private_allowed=False)
        answer = post(target, resolve=lambda *_: ["127.0.0.1", "::1", "169.254.169.254"])

    assert answer == NoAnswer(
        why="its name leads to a private address, which this endpoint does not allow", is_refused_here=True
    )
    assert receiving.came == []


def test_without_tls_nothing_leaves_for_the_internet() -> None:
    """Also where private addresses are allowed."""
    answer = post(endpoint("http://hooks.example.com/"), resolve=lambda *_: [PUBLIC])

    assert isinstance(answer, NoAnswer)
    assert "without TLS" in answer.why


def test_redirects_are_not_followed() -> None:
    """The place that they point to hears nothing."""
    with receiver() as elsewhere, receiver((307, {"Location": elsewhere.url})) as receiving:
        answer = post(endpoint(receiving.url))

    assert isinstance(answer, Answer)
    assert answer.status == 307
    assert elsewhere.came == []


def test_tls_is_verified(tmp_path: Path) -> None:
    """By the authority that was set, for the name that was set; nothing is sent to any other."""
    authority, certificate, key = certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with receiver(context=context) as receiving:
        trusted = endpoint(receiving.url, ca_file=str(authority))
        known = post(trusted)
        stranger = post(endpoint(receiving.url))
        other_name = replace(trusted, url=receiving.url.replace("127.0.0.1", "other.example"))
        misnamed = post(other_name, resolve=lambda *_: ["127.0.0.1"])

    assert isinstance(known, Answer)
    for each in (stranger, misnamed):
        assert isinstance(each, NoAnswer)
        assert "certificate is not to be trusted" in each.why
    assert len(receiving.came) == 1


@pytest.mark.parametrize("step", [at.HANG, at.DRIP])
def test_no_answer_takes_longer_than_it_may(step: str) -> None:
    """Also where a byte comes now and then, so that no single wait is long."""
    began_s = time.monotonic()
    with receiver(step) as receiving:
        answer = post(endpoint(receiving.url, timeout_s=0.3))

    assert answer == NoAnswer(why="no answer within 0.3 s")
    assert time.monotonic() - began_s < 5


def test_neither_a_name_nor_a_handshake_takes_longer() -> None:
    """A resolver that never answers, and a server that accepts and says nothing."""
    ended = threading.Event()

    def resolve(*_: object) -> list[str]:
        ended.wait(10)
        return []

    unresolved = post(endpoint("https://slow.example/", timeout_s=0.2), resolve=resolve)
    ended.set()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        unshaken = post(endpoint(f"https://127.0.0.1:{port}/", timeout_s=0.2))

    assert unresolved == unshaken == NoAnswer(why="no answer within 0.2 s")


def test_an_answer_is_read_to_a_bound_and_cleaned() -> None:
    """A page of a hundred megabytes, control characters, and our own secret said back."""
    body = "\x1b[31mno\r\n" + "x" * (BODY_BYTES * 10)
    with receiver((400, {"body": body}), (400, {"body": "bad key R0UTING-KEY-0123"})) as receiving:
        long = post(endpoint(receiving.url))
        echoed = post(endpoint(receiving.url, routing_key="R0UTING-KEY-0123"))

    assert isinstance(long, Answer)
    assert long.body.startswith("[31mno xxx")
    assert len(long.body) == SHOWN_CHARS
    assert isinstance(echoed, Answer)
    assert echoed.body == "bad key ***"


@pytest.mark.parametrize("step", [at.CUT, at.GARBAGE])
def test_what_is_no_answer_is_none(step: str) -> None:
    """A connection that is cut, and an answer that is not HTTP."""
    with receiver(step) as receiving:
        answer = post(endpoint(receiving.url))

    assert isinstance(answer, NoAnswer)
    assert not answer.is_refused_here


def test_nobody_there_is_no_answer() -> None:
    """A port that nobody listens on, and a name that is none."""

    def unknown(*_: object) -> list[str]:
        raise socket.gaierror(-2, "Name or service not known")

    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        refused = post(endpoint(f"http://127.0.0.1:{bound.getsockname()[1]}/"))
    unnamed = post(endpoint("https://nowhere.example/"), resolve=unknown)

    assert refused == NoAnswer(why="Connection refused")
    assert unnamed == NoAnswer(why="Name or service not known")


def test_an_endpoint_shows_no_secret() -> None:
    """Neither its text nor what is shown of its address."""
    url = "https://hooks.example.com:8443/services/T0/B0/secret"
    target = endpoint(url, token="secret", routing_key="secret")

    assert "secret" not in repr(target) + target.place
    assert target.place == "https://hooks.example.com:8443"
