"""How a connection is kept safe, by the names that librdkafka gives these settings, and SASL's own steps.

    security.protocol   PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL
    TLS                 ssl.ca.location|pem, ssl.certificate.location|pem and ssl.key.location|pem with
                        ssl.key.password, enable.ssl.certificate.verification,
                        ssl.endpoint.identification.algorithm; without an authority the system's are trusted
    SASL                PLAIN (RFC 4616), SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802), OAUTHBEARER (oauth.py)

Owns what these settings mean for a plain socket. Refuses, by `Unaskable` and never by a weaker way, what it
cannot do: other mechanisms, key stores, certificates as PEM text where a file is needed.

Invariant: what is asked for is what is done; a SCRAM server that does not prove itself is not believed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import TypeAlias

from tiering.cluster.quorum.errors import Unaskable
from tiering.cluster.quorum.oauth import bearer

# What the client says; it is sent what the server says in turn. Ends when nothing more is to be said.
Dialogue: TypeAlias = Generator[bytes, bytes, None]

BEARER = "OAUTHBEARER"
MIN_ITERATIONS = 4096  # as Kafka's own clients want, and RFC 7677
MAX_ITERATIONS = 1_000_000  # a server may not keep us busy for ever
_CANNOT = (
    "ssl.keystore.location",
    "ssl.engine.location",
    "ssl.providers",
    "ssl.certificate.pem",
    "ssl.key.pem",
)


def protocol_of(settings: Mapping[str, str]) -> str:
    found = settings.get("security.protocol", "plaintext").upper()
    if found not in {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}:
        raise Unaskable(f"security.protocol {found} is not known here")
    return found


def tls_of(settings: Mapping[str, str]) -> ssl.SSLContext | None:
    """What to wrap the socket with; None where the settings want no TLS."""
    if not protocol_of(settings).endswith("SSL"):
        return None
    for name in _CANNOT:
        if settings.get(name):
            raise Unaskable(f"{name} cannot be used to ask about the quorum: name PEM files instead")
    try:
        return _context(settings)
    except (OSError, ValueError) as refused:  # ssl.SSLError is an OSError
        raise Unaskable(f"the certificates cannot be used: {refused}") from refused


def _context(settings: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority, text = settings.get("ssl.ca.location"), settings.get("ssl.ca.pem")
    if authority and authority != "probe":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        is_folder = Path(authority).is_dir()
        context.load_verify_locations(
            cafile=None if is_folder else authority, capath=authority if is_folder else None
        )
    elif text:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=text)
    context.check_hostname = settings.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate := settings.get("ssl.certificate.location"):
        context.load_cert_chain(
            certificate, settings.get("ssl.key.location"), settings.get("ssl.key.password")
        )
    return context


def mechanism_of(settings: Mapping[str, str]) -> str | None:
    """The SASL mechanism; None where the settings want none."""
    if not protocol_of(settings).startswith("SASL"):
        return None
    found = settings.get("sasl.mechanisms") or settings.get("sasl.mechanism") or "GSSAPI"
    if found not in (*_DIALOGUES, BEARER):
        known = ", ".join(sorted((*_DIALOGUES, BEARER)))
        raise Unaskable(f"sasl.mechanism {found} cannot be used to ask about the quorum; these can: {known}")
    return found


def dialogue_of(settings: Mapping[str, str], mechanism: str) -> Dialogue:
    """Its first words may take a while: where a token is asked for, that is another server."""
    if mechanism == BEARER:
        return bearer(settings)
    user, password = settings.get("sasl.username"), settings.get("sasl.password")
    if user is None or password is None:
        raise Unaskable("sasl.username and sasl.password are not set")
    digest = _DIALOGUES[mechanism]
    return _plain(user, password) if digest is None else _scram(user, password, digest)


_DIALOGUES: Mapping[str, str | None] = {"PLAIN": None, "SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


def _plain(user: str, password: str) -> Dialogue:
    yield f"\0{user}\0{password}".encode()


def _scram(user: str, password: str, digest: str, nonce: str | None = None) -> Dialogue:
    ours = nonce or base64.b64encode(secrets.token_bytes(24)).decode()
    first = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={ours}"
    answer = (yield f"n,,{first}".encode()).decode("utf-8", "replace")
    said = _attributes(answer)
    theirs, salt, rounds = said.get("r", ""), said.get("s", ""), said.get("i", "")
    if not theirs.startswith(ours) or not rounds.isdecimal():
        raise Unaskable(f"the broker's SCRAM answer does not fit: {said.get('e', 'no nonce of ours in it')}")
    if not MIN_ITERATIONS <= int(rounds) <= MAX_ITERATIONS:
        raise Unaskable(f"the broker wants {rounds} SCRAM iterations")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(salt), int(rounds))
    bare = f"c=biws,r={theirs}"  # biws: the header "n,," again
    signed = f"{first},{answer},{bare}".encode()
    key = hmac.digest(salted, b"Client Key", digest)
    proof = _xor(key, hmac.digest(hashlib.new(digest, key).digest(), signed, digest))
    final = _attributes(
        (yield f"{bare},p={base64.b64encode(proof).decode()}".encode()).decode("utf-8", "replace")
    )
    wanted = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
    if not hmac.compare_digest(final.get("v", ""), base64.b64encode(wanted).decode()):
        raise Unaskable(f"the broker did not prove that it knows the password: {final.get('e', 'no proof')}")


def _attributes(message: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in message.split(",") if part[1:2] == "="}


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))
