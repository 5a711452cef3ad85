"""SASL, passed through: a client shows the cluster its credentials by way of us.

PLAIN only: with its user and password we connect upstream as the client, to any broker that its requests go
to. Mechanisms whose proof is good for one connection alone (SCRAM) cannot be passed on to several brokers and
are not offered.

Owns one client's sign-in. Refuses to judge credentials: a broker does. They are kept in memory for as long as
the client is connected, and written nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping

from tiering.serve.client import Client
from tiering.serve.cluster import Cluster
from tiering.serve.counters import Counters
from tiering.serve.errors import UpstreamAway, UpstreamRefuses
from tiering.serve.protocol.codes import Code
from tiering.serve.protocol.session import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tiering.serve.upstream import open_upstream
from tiering.serve.who import Kept, Own

PLAIN = "PLAIN"


class SignIn:
    """Of one client. `settings` are the service's own, for all but the credentials."""

    def __init__(
        self, client: Client, cluster: Cluster, counters: Counters, settings: Mapping[str, str]
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._counters = counters
        self._settings = settings
        self._mechanism = ""

    async def answer(
        self, request: SaslHandshakeRequest | SaslAuthenticateRequest, version: int
    ) -> SaslHandshakeResponse | SaslAuthenticateResponse:
        if isinstance(request, SaslHandshakeRequest):
            return self._handshake(request)
        return await self._authenticate(request)

    def _handshake(self, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        if request.mechanism != PLAIN:
            self._counters.count("sasl_failed")
            return SaslHandshakeResponse(error_code=Code.UNSUPPORTED_SASL_MECHANISM, mechanisms=(PLAIN,))
        self._mechanism = PLAIN
        return SaslHandshakeResponse(error_code=Code.NONE, mechanisms=(PLAIN,))

    async def _authenticate(self, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        if not self._mechanism:
            return self._failed(Code.ILLEGAL_SASL_STATE, "a handshake comes first")
        parts = request.auth_bytes.split(b"\0")
        if len(parts) != 3 or not parts[1]:
            return self._failed(Code.SASL_AUTHENTICATION_FAILED, "this is not what PLAIN says")
        try:
            user, password = parts[1].decode(), parts[2].decode()
        except UnicodeDecodeError:
            return self._failed(Code.SASL_AUTHENTICATION_FAILED, "this is not UTF-8")
        settings = {
            **self._settings,
            "sasl.mechanism": PLAIN,
            "sasl.mechanisms": PLAIN,
            "sasl.username": user,
            "sasl.password": password,
        }
        return await self._tried(user, settings)

    async def _tried(self, user: str, settings: Mapping[str, str]) -> SaslAuthenticateResponse:
        for address in self._cluster.addresses():
            try:
                upstream = await open_upstream(address, settings, budget=self._client.budget)
            except UpstreamRefuses as refused:
                return self._failed(Code.SASL_AUTHENTICATION_FAILED, refused.why)
            except UpstreamAway:
                continue
            self._client.close()  # nothing that was opened as somebody else is used again
            self._client.adopt(upstream)
            self._client.who = Own(f"User:{user}", settings, self._client.any_upstream, Kept(self._counters))
            return SaslAuthenticateResponse(error_code=Code.NONE)
        return self._failed(Code.SASL_AUTHENTICATION_FAILED, "no broker answers now")

    def _failed(self, code: Code, why: str) -> SaslAuthenticateResponse:
        self._counters.count("sasl_failed")
        return SaslAuthenticateResponse(error_code=code, error_message=why)
