"""librdkafka's properties as Kafka's Java client takes them, which Spark reads with.

Owns the translation. Refuses a property of security that it does not know: to leave it out could mean to
connect without it. What is not about security is left out, as Spark has its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from audit_engine.tables.errors import PropertyUntranslated

_SAME = ("bootstrap.servers", "security.protocol", "client.id")
_PEM = {"ssl.ca.location": ("ssl.truststore.location", "ssl.truststore.type")}
_MECHANISM = ("sasl.mechanism", "sasl.mechanisms")
_PASSWORD = ("sasl.username", "sasl.password")
_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
BEARER = "OAUTHBEARER"
_BEARER_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_BEARER_LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_OAUTH = "sasl.oauthbearer."
_OF_JAAS = {  # what Kafka's own login reads from there
    f"{_OAUTH}client.id": "clientId",
    f"{_OAUTH}client.secret": "clientSecret",
    f"{_OAUTH}scope": "scope",
}
_ENDPOINT = f"{_OAUTH}token.endpoint.url"
_SECURITY = ("ssl.", "sasl.", "enable.ssl", "enable.sasl", "https.")
KNOWN = (
    "It can hand on: "
    + ", ".join((*_SAME[1:], *_PEM, *_MECHANISM, *_PASSWORD, *_MODULES, BEARER, *_OF_JAAS, _ENDPOINT))
    + "."
)


def java_properties(config: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in config.items():
        if name in _SAME:
            found[name] = value
        elif name in _PEM:
            location, kind = _PEM[name]
            found |= {location: value, kind: "PEM"}
        elif name in _MECHANISM:
            found |= _bearer(config) if value == BEARER else {"sasl.jaas.config": _jaas(name, value, config)}
            found["sasl.mechanism"] = value
        elif name not in (*_PASSWORD, *_OF_JAAS, _ENDPOINT, f"{_OAUTH}method") and name.startswith(_SECURITY):
            raise PropertyUntranslated(name=name, known=KNOWN)
    return found


def self_contained(properties: Mapping[str, str]) -> dict[str, str]:
    """The same with the certificates themselves for the file that has them: another host has no such file."""
    found = dict(properties)
    location = found.get("ssl.truststore.location")
    if location is not None and Path(location).is_file():
        del found["ssl.truststore.location"]
        found["ssl.truststore.certificates"] = Path(location).read_text(encoding="utf-8")
    return found


def _bearer(config: Mapping[str, str]) -> dict[str, str]:
    """Tokens that the Java client asks the same endpoint for, by the same client's secret."""
    method = config.get(f"{_OAUTH}method", "default")
    if method.lower() != "oidc" or _ENDPOINT not in config:
        raise PropertyUntranslated(name=f"{_OAUTH}method = {method}", known=KNOWN)
    said = " ".join(f"{own}={_quoted(config[name])}" for name, own in _OF_JAAS.items() if name in config)
    return {
        "sasl.jaas.config": f"{_BEARER_MODULE} required {said};",
        "sasl.login.callback.handler.class": _BEARER_LOGIN,
        _ENDPOINT: config[_ENDPOINT],
    }


def _jaas(name: str, mechanism: str, config: Mapping[str, str]) -> str:
    if mechanism not in _MODULES:
        raise PropertyUntranslated(name=f"{name} = {mechanism}", known=KNOWN)
    user, password = (_quoted(config.get(each, "")) for each in _PASSWORD)
    return f"{_MODULES[mechanism]} required username={user} password={password};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
