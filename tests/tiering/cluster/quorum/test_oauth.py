"""Tokens for SASL/OAUTHBEARER: asked of a real endpoint, kept, and what is refused on the way."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.cluster.tokens import CLIENT, LIFE_S, SECRET
from tests.cluster.tokens import Tokens as Issuer
from tiering.cluster.quorum.errors import Unaskable
from tiering.cluster.quorum.oauth import TOKENS_MAX, Tokens, bearer
from tiering.cluster.quorum.security import dialogue_of, mechanism_of

UNSECURED = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": "true",
    "sasl.oauthbearer.config": "principal=tide scope=read,write lifeSeconds=60 extension_traceId=7",
}


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    found = Issuer()
    yield found
    found.close()


def of(url: str, **more: str) -> dict[str, str]:
    return {
        "sasl.oauthbearer.method": "OIDC",
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.id": CLIENT,
        "sasl.oauthbearer.client.secret": SECRET,
        **{f"sasl.oauthbearer.{name.replace('_', '.')}": value for name, value in more.items()},
    }


def claims_of(said: bytes) -> dict[str, Any]:
    token = said.partition(b"Bearer ")[2].partition(b"\x01")[0]
    part = token.split(b".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + b"=" * (-len(part) % 4)))
    return found


def test_a_token_is_asked_for_once_until_the_last_fifth_of_its_life(issuer: Issuer) -> None:
    """Connections share it; other settings, its time, or a broker that refuses it make it another one."""
    now = [1_000.0]
    tokens = Tokens(now_s=lambda: now[0])
    given = issuer.given

    first = tokens.of(of(issuer.url))
    assert tokens.of(of(issuer.url)) == first
    assert issuer.given - given == 1
    tokens.of(of(issuer.url, scope="other"))
    now[0] += 0.8 * LIFE_S
    tokens.of(of(issuer.url))
    assert issuer.given - given == 3
    talk = bearer(of(issuer.url), tokens)
    next(talk)
    assert talk.send(b'{"status":"invalid_token"}') == b"\x01"
    tokens.of(of(issuer.url))
    assert issuer.given - given == 4


def test_so_many_are_kept_and_no_more(issuer: Issuer) -> None:
    """The one that was asked for first goes first."""
    tokens = Tokens()
    given = issuer.given
    for number in range(TOKENS_MAX + 1):
        tokens.of(of(issuer.url, scope=str(number)))

    tokens.of(of(issuer.url, scope="1"))
    assert issuer.given - given == TOKENS_MAX + 1
    tokens.of(of(issuer.url, scope="0"))
    assert issuer.given - given == TOKENS_MAX + 2


def test_what_is_said_is_that_of_the_rfc(issuer: Issuer) -> None:
    """RFC 7628, 3.1: the header, the token, what goes with it; and nothing more after a silent yes."""
    talk = bearer(of(issuer.url, extensions="logicalCluster=lkc,pool=p=1"))

    said = next(talk)
    assert said.startswith(b"n,,\x01auth=Bearer ey")
    assert said.endswith(b"\x01logicalCluster=lkc\x01pool=p=1\x01\x01")
    assert claims_of(said)["sub"] == CLIENT
    with pytest.raises(StopIteration):
        talk.send(b"")


def test_an_unsecured_token_is_made_as_librdkafka_makes_it() -> None:
    """Signed by nobody: the three parts, of which the last is empty; its claims and extensions as told."""
    assert mechanism_of(UNSECURED) == "OAUTHBEARER"
    said = next(dialogue_of(UNSECURED, "OAUTHBEARER"))

    claims = claims_of(said)
    assert said.endswith(b".\x01traceId=7\x01\x01")
    assert (claims["sub"], claims["scope"]) == ("tide", ["read", "write"])
    assert claims["exp"] - claims["iat"] == 60


class Odd(BaseHTTPRequestHandler):
    """An endpoint that does something else than to give a token."""

    def do_POST(self) -> None:
        where = self.path.removeprefix("/")
        self.send_response(302 if where == "redirect" else 200)
        if where == "redirect":
            self.send_header("Location", "/empty")
        self.end_headers()
        said = {"html": b"<html>", "empty": b"{}", "list": b"[]", "lines": b'{"access_token": "a\\r\\nb"}'}
        self.wfile.write(said.get(where, b""))

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def odd() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("redirect", "HTTP 302"),
        ("html", "is no token"),
        ("list", "is no token"),
        ("empty", "without an access_token"),
        ("lines", "without an access_token"),
    ],
)
def test_what_gives_no_token_is_neither_followed_nor_believed(odd: str, path: str, why: str) -> None:
    """A redirect would carry the secret to another host; a token with a line end would be more than one."""
    with pytest.raises(Unaskable, match=why):
        Tokens().of(of(f"{odd}/{path}"))


def test_what_is_wrong_is_named_and_no_secret_is(issuer: Issuer) -> None:
    """The setting, the endpoint and its status; never the secret that was refused, nor a token."""
    for settings, why in (
        (of(issuer.url) | {"sasl.oauthbearer.client.secret": "neap"}, "HTTP 401"),
        (of("file:///etc/passwd"), "no http:// or https:// address"),
        (of(issuer.url, grant_type="urn:ietf:params:oauth:grant-type:jwt-bearer"), "grant.type"),
        ({"sasl.oauthbearer.method": "oidc", "sasl.oauthbearer.token.endpoint.url": issuer.url}, "client.id"),
        ({}, "is not oidc"),
        (UNSECURED | {"sasl.oauthbearer.config": "scope=x"}, "principal"),
        (of(issuer.url) | {"https.ca.location": "/nowhere.pem"}, "https.ca.location"),
    ):
        with pytest.raises(Unaskable, match=why) as refused:
            Tokens().of(settings)
        assert "neap" not in str(refused.value)
    tokens = Tokens()
    assert tokens.of(of(issuer.url)) not in repr(tokens._known)


def test_an_endpoint_that_is_away_is_no_refusal(issuer: Issuer) -> None:
    """It may come back: an OSError, as for a broker that is away."""
    with pytest.raises(OSError, match="gives no token"):
        Tokens().of(of("http://127.0.0.1:1/token"))
