"""What can keep the endpoint from starting, or from asking the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tiering.errors import StatedError


@dataclass(kw_only=True, eq=False)
class ServeError(StatedError):
    """the endpoint cannot serve: {why}"""

    exit_code: ClassVar[int] = 38

    why: str


@dataclass(kw_only=True, eq=False)
class ListenRefused(ServeError):
    """cannot listen on {address}: {why}

    Another process may have the port; `--listen` names another.
    """

    address: str


@dataclass(kw_only=True, eq=False)
class Exposed(ServeError):
    """{address} can be reached from other machines, and nothing would tell who reads: {why}

    Whoever connects would read with this service's permissions. Listen on 127.0.0.1, ask for client
    certificates (serve.tls_client_ca), or let clients authenticate to the cluster (serve.sasl).
    """

    address: str


@dataclass(kw_only=True, eq=False)
class UpstreamAway(ServeError):
    """broker {address} does not answer: {why}"""

    address: str


@dataclass(kw_only=True, eq=False)
class UpstreamRefuses(UpstreamAway):
    """broker {address} refuses: {why}"""
