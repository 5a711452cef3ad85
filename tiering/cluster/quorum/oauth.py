"""A token for SASL/OAUTHBEARER (RFC 7628), by the names that librdkafka gives these settings.

    sasl.oauthbearer.method = oidc       asked of sasl.oauthbearer.token.endpoint.url by client credentials
                                         (RFC 6749, 4.4): client.id, client.secret, scope, extensions;
                                         https.ca.location|pem say whom to trust there
    enable.sasl.oauthbearer.unsecure.jwt made here and signed by nobody, of sasl.oauthbearer.config: for
                                         brokers that are tried out

Owns how a token is had, and for how long one is used again. Refuses, by `Unaskable`, other grants, redirects
(they would carry the secret to another host) and answers without a token. No error shows a token or secret.

Invariant: a token is used for the settings that it was asked with, and not in the last fifth of its life.
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from tiering.cluster.quorum.errors import Unaskable

ANSWER_BYTES_MAX = 256 * 1024
TIMEOUT_S = 5.0
TOKENS_MAX = 16  # one for each cluster that a process speaks to
LIFE_S = 3600  # librdkafka's for its unsecured tokens, and where an endpoint does not say
USED_FOR = 0.8
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_NAMED = "sasl.oauthbearer."
_UNSECURED = "enable.sasl.oauthbearer.unsecure.jwt"
_GRANT = "client_credentials"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is shown to a broker, and until when on the clock that it was asked by."""

    text: str
    use_until_s: float

    def __repr__(self) -> str:
        return f"Token(use_until_s={self.use_until_s})"


class Tokens:
    """Those that are still good. Any thread."""

    def __init__(self, *, now_s: Callable[[], float] = time.time) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._known: dict[tuple[tuple[str, str], ...], Token] = {}

    def of(self, settings: Mapping[str, str]) -> str:
        """One for these settings, asked for if there is none."""
        key = _key(settings)
        with self._lock:  # who else needs one waits for it, and asks nobody
            known = self._known.get(key)
            if known is None or known.use_until_s <= self._now_s():
                known = _fresh(settings, self._now_s())
                while len(self._known) >= TOKENS_MAX:
                    del self._known[next(iter(self._known))]
                self._known[key] = known
        return known.text

    def forget(self, settings: Mapping[str, str]) -> None:
        """A broker does not take it."""
        with self._lock:
            self._known.pop(_key(settings), None)


OF_THIS_PROCESS = Tokens()


def bearer(settings: Mapping[str, str], tokens: Tokens = OF_THIS_PROCESS) -> Generator[bytes, bytes, None]:
    """What the client says: a token and what goes with it; and where it is refused, that it heard."""
    extensions = "".join(f"{name}={value}\x01" for name, value in _extensions(settings).items())
    refusal = yield f"n,,\x01auth=Bearer {tokens.of(settings)}\x01{extensions}\x01".encode()
    if refusal:
        tokens.forget(settings)
        yield b"\x01"  # upon which the broker says why, and ends it (RFC 7628, 3.2.3)
        raise Unaskable("the broker takes no such token, and did not say why")


def _key(settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    ours = (_NAMED, "https.ca.", _UNSECURED)
    return tuple(sorted(pair for pair in settings.items() if pair[0].startswith(ours)))


def _extensions(settings: Mapping[str, str]) -> dict[str, str]:
    if _is_oidc(settings):
        return _pairs(settings.get(f"{_NAMED}extensions", ""), ",")
    given = _pairs(settings.get(f"{_NAMED}config", ""), None)
    return {
        name.removeprefix("extension_"): value
        for name, value in given.items()
        if name.startswith("extension_")
    }


def _is_oidc(settings: Mapping[str, str]) -> bool:
    return settings.get(f"{_NAMED}method", "default").lower() == "oidc"


def _fresh(settings: Mapping[str, str], now_s: float) -> Token:
    if _is_oidc(settings):
        return _asked(settings, now_s)
    if settings.get(_UNSECURED, "false").lower() == "true":
        return _unsecured(settings, now_s)
    raise Unaskable("sasl.oauthbearer.method is not oidc, so there is nobody to ask for a token")


def _unsecured(settings: Mapping[str, str], now_s: float) -> Token:
    """As librdkafka makes it, which is RFC 7515, appendix A.5."""
    given = _pairs(settings.get(f"{_NAMED}config", ""), None)
    if not given.get("principal") or not given.get("lifeSeconds", "1").isdecimal():
        raise Unaskable("sasl.oauthbearer.config says no principal=NAME, or a lifeSeconds that is no number")
    life_s = int(given.get("lifeSeconds", LIFE_S))
    claims: dict[str, object] = {
        given.get("principalClaimName", "sub"): given["principal"],
        "iat": now_s,
        "exp": now_s + life_s,
    }
    if given.get("scope"):
        claims[given.get("scopeClaimName", "scope")] = given["scope"].split(",")
    text = ".".join([_part({"alg": "none"}), _part(claims), ""])
    return Token(text=text, use_until_s=now_s + USED_FOR * life_s)


def _part(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


def _asked(settings: Mapping[str, str], now_s: float) -> Token:
    """Of the endpoint, by client credentials."""
    answer = _answer(_request(settings), settings)
    text, life_s = answer.get("access_token"), answer.get("expires_in", LIFE_S)
    if not isinstance(text, str) or not text or not text.isprintable():
        raise Unaskable(f"{settings[ENDPOINT]} answered without an access_token")
    if isinstance(life_s, str) and life_s.isdecimal():
        life_s = int(life_s)
    if not isinstance(life_s, (int, float)) or isinstance(life_s, bool):
        life_s = 0  # used once
    return Token(text=text, use_until_s=now_s + USED_FOR * life_s)


def _request(settings: Mapping[str, str]) -> urllib.request.Request:
    for name, known in (("grant.type", _GRANT), ("metadata.authentication.type", "none")):
        found = settings.get(f"{_NAMED}{name}", known)
        if found != known:
            raise Unaskable(f"{_NAMED}{name} = {found} is not known here, only {known}")
    url = settings.get(ENDPOINT, "")
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise Unaskable(f"{ENDPOINT} is no http:// or https:// address")
    user, secret = (
        settings.get(f"{_NAMED}client.{each}") or settings.get(f"{_NAMED}client.credentials.client.{each}")
        for each in ("id", "secret")
    )
    if user is None or secret is None:
        raise Unaskable("sasl.oauthbearer.client.id and sasl.oauthbearer.client.secret are not set")
    asked = {"grant_type": _GRANT}
    if scope := settings.get(f"{_NAMED}scope"):
        asked["scope"] = scope
    request = urllib.request.Request(url, data=urllib.parse.urlencode(asked).encode(), method="POST")
    request.add_unredirected_header(
        "Authorization", f"Basic {base64.b64encode(f'{user}:{secret}'.encode()).decode()}"
    )
    request.add_header("Accept", "application/json")
    return request


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None  # which leaves it an HTTPError


def _answer(request: urllib.request.Request, settings: Mapping[str, str]) -> Mapping[str, Any]:
    opener = urllib.request.build_opener(
        _NoRedirect(), urllib.request.HTTPSHandler(context=_trusted(settings))
    )
    where = request.full_url
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            content = answer.read(ANSWER_BYTES_MAX + 1)
    except urllib.error.HTTPError as refused:
        with refused:
            raise Unaskable(f"{where} gives no token: HTTP {refused.code}") from None
    except urllib.error.URLError as away:
        if isinstance(away.reason, ssl.SSLError):
            raise Unaskable(f"{where} is not believed: {away.reason}") from away
        raise ConnectionError(f"{where} gives no token: {away.reason}") from away
    try:
        found = json.loads(content) if len(content) <= ANSWER_BYTES_MAX else None
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unaskable(f"what {where} answered is no token")
    return found


def _trusted(settings: Mapping[str, str]) -> ssl.SSLContext:
    location, text = settings.get("https.ca.location"), settings.get("https.ca.pem")
    try:
        if location and location != "probe":
            return ssl.create_default_context(cafile=location)
        return ssl.create_default_context(cadata=text or None)
    except (OSError, ValueError) as refused:
        raise Unaskable(f"https.ca.location or https.ca.pem cannot be used: {refused}") from refused


def _pairs(text: str, separator: str | None) -> dict[str, str]:
    """NAME=VALUE, as often as it stands there."""
    found = (each.strip().partition("=") for each in text.split(separator) if each.strip())
    return {name: value for name, _, value in found}
