"""Endpoints as the settings name them, with the secrets that they refer to.

    env:NAME     the environment variable of that name
    file:PATH    what the file of that name holds, without white space at its end

Owns the reading. A secret is in no message: what is missing is said by its reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from audit_engine.alerts.endpoints import HOUR_MS, Endpoint, Format
from audit_engine.alerts.errors import SecretMissing
from audit_engine.alerts.signing import secret_of
from seawall.settings import Settings
from seawall.settings.alerts import SEVERITIES, AlertEndpoint, is_reference, url_trouble

SECRET_BYTES_MAX = 16 * 1024


def endpoints_of(settings: Settings, environ: Mapping[str, str]) -> list[Endpoint]:
    """In the order of the file. Raises SecretMissing."""
    return [_endpoint(each, environ) for each in settings.alerts.endpoints]


def _endpoint(said: AlertEndpoint, environ: Mapping[str, str]) -> Endpoint:
    def secret(what: str, reference: str | None) -> str:
        return "" if reference is None else _secret(said.name, what, reference, environ)

    signing = []
    for reference in said.secrets:
        try:
            signing.append(secret_of(secret("a secret to sign with", reference)))
        except ValueError as refused:
            raise _missing(said.name, "a secret to sign with", reference, f"it must be {refused}") from None
    url = said.url
    if is_reference(url):
        url = secret("its address", url)
        trouble = url_trouble(url, allow_private=said.allow_private)
        if trouble is not None:
            raise _missing(said.name, "its address", said.url, f"it must be {trouble}")
    return Endpoint(
        name=said.name,
        format=Format(said.format),
        url=url,
        severity=SEVERITIES[said.severity],
        signing=tuple(signing),
        routing_key=secret("its routing key", said.routing_key),
        token=secret("its token", said.token),
        is_private_allowed=said.allow_private,
        ca_file=said.ca_file,
        timeout_s=float(said.timeout_s),
        keeps_firing_ms=said.keeps_firing_hours * HOUR_MS,
        findings_max=said.findings_max,
    )


def _secret(name: str, what: str, reference: str, environ: Mapping[str, str]) -> str:
    sort, _, where = reference.partition(":")
    if sort == "env":
        found = environ.get(where, "")
    else:
        try:
            with Path(where).open("rb") as file:
                found = file.read(SECRET_BYTES_MAX).decode("ascii")
        except OSError as refused:
            raise _missing(name, what, reference, refused.strerror or str(refused)) from refused
        except UnicodeDecodeError:
            raise _missing(name, what, reference, "it is no plain text") from None
    text = found.strip()
    if not text:
        raise _missing(name, what, reference, "there is nothing")
    if not text.isascii() or not text.isprintable():
        raise _missing(name, what, reference, "it is more than one line of plain text")
    return text


def _missing(name: str, what: str, reference: str, why: str) -> SecretMissing:
    return SecretMissing(name=name, what=what, reference=reference, why=why)
