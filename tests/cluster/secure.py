"""A real broker as in production: who comes from outside speaks TLS, and signs in by SCRAM or with a token.

Two listeners. The plain one is the broker's own, and the one that a test makes its topics by; the safe one
(SASL_SSL, at localhost, the name in its certificate) is for what is tested: `SecureBroker.client()` has the
librdkafka settings for it, `kafka_settings()` the same as a piece of seawall.toml. Users are there from the
first start on (`kafka-storage format --add-scram`). `by_token()` comes by OAUTHBEARER to the same listener:
whoever `tokens` gave one to, signed by the key that the broker has. `stranger` is an authority that signed
nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from seawall.local.broker import LocalCluster
from seawall.local.node import Node
from seawall.local.ports import ReservedPort
from tests.cluster.produce import QUICK_HOUSEKEEPING
from tests.cluster.tokens import AUDIENCE, CLIENT, SECRET, Tokens
from tests.workers.scaler.certificates import make_certificates

LISTENER = "SAFE"
MECHANISM = "SCRAM-SHA-512"
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer"
ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed"  # what a broker may read keys from, said to its JVM


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    name: str
    password: str


USER = User(name="seawall", password="spring-tide")
OTHER = User(name="somebody", password="neap-tide")


class SecureBroker(LocalCluster):
    """One broker with a safe listener; start and stop it like any `LocalCluster`."""

    def __init__(self, folder: Path, *, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, properties=QUICK_HOUSEKEEPING | dict(properties or {}))
        self.tokens = Tokens()
        self._safe_port = ReservedPort()
        self.certificates = make_certificates(_made(folder / "certificates"))
        self.stranger = make_certificates(_made(folder / "stranger")).ca
        self._key_store = folder / "broker.pem"
        self.tokens.write_keys(self._jwks)
        pair = (self.certificates.server_key, self.certificates.server_cert)
        self._key_store.write_bytes(b"".join(each.read_bytes() for each in pair))
        users = [
            f"--add-scram={MECHANISM}=[name={user.name},password={user.password}]" for user in (USER, OTHER)
        ]
        self.nodes = {
            node_id: replace(node, format_command=(*node.format_command, *users))
            for node_id, node in self.nodes.items()
        }
        self.controller = self.nodes[1]

    @property
    def safe_bootstrap(self) -> str:
        return f"localhost:{self._safe_port.number}"

    def client(self, user: User = USER, *, ca: Path | None = None) -> dict[str, str]:
        """What a client needs to come in: librdkafka's own names, its certificate check on."""
        return {
            "bootstrap.servers": self.safe_bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(ca or self.certificates.ca),
            "sasl.mechanism": MECHANISM,
            "sasl.username": user.name,
            "sasl.password": user.password,
        }

    def by_token(self, *, secret: str = SECRET, scope: str = "kafka") -> dict[str, str]:
        """The same by OAUTHBEARER, the token asked for with a client's secret (OpenID Connect)."""
        return {
            "bootstrap.servers": self.safe_bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.certificates.ca),
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": self.tokens.url,
            "sasl.oauthbearer.client.id": CLIENT,
            "sasl.oauthbearer.client.secret": secret,
            "sasl.oauthbearer.scope": scope,
        }

    def kafka_settings(self, user: User = USER, *, ca: Path | None = None) -> str:
        """What `client` gives, as [kafka] and [kafka.client] of a seawall.toml."""
        return as_settings(self.client(user, ca=ca))

    def close(self) -> None:
        super().close()
        self._safe_port.release()
        self.tokens.close()

    @property
    def _jwks(self) -> Path:
        return self.folder / "jwks.json"

    def _java(self, options: Sequence[str], main_class: str, arguments: Sequence[str]) -> list[str]:
        allowed = [
            f"-D{ALLOWED}.{kind}={place}"
            for kind, place in (("urls", self._jwks.as_uri()), ("files", self._jwks))
        ]
        return super()._java([*options, *allowed], main_class, arguments)

    def _properties_of(self, node: Node) -> dict[str, str]:
        properties = super()._properties_of(node)
        protocols = properties["listener.security.protocol.map"]
        mine = f"listener.name.{LISTENER.lower()}"
        return properties | {
            "listeners": f"{properties['listeners']},{LISTENER}://{self._safe_port.address}",
            "advertised.listeners": (
                f"{properties['advertised.listeners']},{LISTENER}://{self.safe_bootstrap}"
            ),
            "listener.security.protocol.map": f"{protocols},{LISTENER}:SASL_SSL",
            "sasl.enabled.mechanisms": f"{MECHANISM},OAUTHBEARER",
            f"{mine}.{MECHANISM.lower()}.sasl.jaas.config": f"{MODULE} required;",
            f"{mine}.oauthbearer.sasl.jaas.config": f"{BEARER}.OAuthBearerLoginModule required;",
            f"{mine}.oauthbearer.sasl.server.callback.handler.class": (
                f"{BEARER}.OAuthBearerValidatorCallbackHandler"
            ),
            f"{mine}.oauthbearer.sasl.oauthbearer.jwks.endpoint.url": self._jwks.as_uri(),
            f"{mine}.oauthbearer.sasl.oauthbearer.expected.audience": AUDIENCE,
            f"{mine}.ssl.keystore.type": "PEM",
            f"{mine}.ssl.keystore.location": str(self._key_store),
        }


def as_settings(client: Mapping[str, str]) -> str:
    """A client's configuration as [kafka] and [kafka.client] of a seawall.toml."""
    left = dict(client)
    lines = [f'bootstrap = "{left.pop("bootstrap.servers")}"', "[kafka.client]"]
    return "\n".join(["[kafka]", *lines, *(f'"{name}" = "{value}"' for name, value in left.items())])


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder
