"""The settings as values: each with its default and what is allowed. Making one reads nothing.

Validators say what is allowed, in words that fit after "must be"; `load` adds the key, where it stands and
the value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from rules.policy import quantities
from seawall.settings.alerts import AlertEndpoint, read_endpoints

ENV_PREFIX = "SEAWALL_"
ENV_DELIMITER = "__"

_BROKER = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9!_.*'()-]+(/[A-Za-z0-9!_.*'()-]+)*")
# librdkafka's own names: what carries a password, a token or a private key, whole or in part.
_SECRET = re.compile(r"password|secret|private|\bkey\.pem|oauthbearer\.config|token(?!\.endpoint)|assertion")


def is_secret(librdkafka_property: str) -> bool:
    return _SECRET.search(librdkafka_property) is not None


def _broker_list(text: str) -> str:
    brokers = [part.strip() for part in text.split(",")]
    for broker in brokers:
        parts = _BROKER.fullmatch(broker)
        if parts is None or not 0 < int(parts[2]) <= 65535:
            raise ValueError("host:port, or several of them with commas between")
    return ",".join(brokers)


def _bucket_name(text: str) -> str:
    if _BUCKET.fullmatch(text) is None:
        raise ValueError("the name of a bucket, 3 to 63 of a-z 0-9 . - (no s3://, no path)")
    return text


def _key_prefix(text: str) -> str:
    if _PREFIX.fullmatch(text) is None:
        raise ValueError(
            "words of A-Z a-z 0-9 ! _ . * ' ( ) - with single slashes between, none at either end"
        )
    return text


def _endpoint(text: str) -> str:
    allowed = (
        "http:// or https://, a host, and perhaps a port (credentials are boto3's own chain, not part of it)"
    )
    try:
        url = urlsplit(text)
        _ = url.port  # raises if it is not a number in range
    except ValueError:
        raise ValueError(allowed) from None
    extras = url.path.strip("/") or url.query or url.fragment or "@" in url.netloc
    if url.scheme not in ("http", "https") or not url.hostname or extras:
        raise ValueError(allowed)
    return text.rstrip("/")


def _region(text: str) -> str:
    if re.fullmatch(r"[a-z0-9-]{2,40}", text) is None:
        raise ValueError("the name of a region, such as eu-central-1")
    return text


def _properties(table: Any) -> Any:
    """Every librdkafka property as the text that librdkafka takes, those that carry a secret hidden."""
    if not isinstance(table, Mapping):
        return table
    return {name: _property(name, value) for name, value in table.items()}


def _property(name: str, value: Any) -> Any:
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, (int, float)):
        text = str(value)
    else:
        text = value
    return SecretStr(text) if isinstance(text, str) and is_secret(name) else text


Properties = Annotated[Mapping[str, str | SecretStr], BeforeValidator(_properties)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class KafkaSettings(_Table):
    """[kafka]: how to reach the cluster."""

    bootstrap: Annotated[str, AfterValidator(_broker_list)] | None = None
    client: Properties = {}

    def librdkafka(self) -> dict[str, str]:
        """The configuration of a client, secrets and all: to be handed to librdkafka, never printed."""
        revealed = {
            name: value.get_secret_value() if isinstance(value, SecretStr) else value
            for name, value in self.client.items()
        }
        return revealed | ({"bootstrap.servers": self.bootstrap} if self.bootstrap else {})


class S3Settings(_Table):
    """[s3]: where segments go. Credentials are not here: boto3's own chain finds them."""

    bucket: Annotated[str, AfterValidator(_bucket_name)] | None = None
    prefix: Annotated[str, AfterValidator(_key_prefix)] = "seawall"
    endpoint_url: Annotated[str, AfterValidator(_endpoint)] | None = None
    region: Annotated[str, AfterValidator(_region)] | None = None


def _whole(least: int, most: int) -> BeforeValidator:
    """A whole number; a variable or a flag gives it as text."""

    def read(raw: Any) -> int:
        text = str(raw) if isinstance(raw, (int, str)) and not isinstance(raw, bool) else ""
        if re.fullmatch(r"\d{1,18}", text) is None or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return int(text)

    return BeforeValidator(read)


def _size(raw: Any) -> int:
    try:
        size_bytes = quantities.read_bytes(int(raw) if isinstance(raw, str) and raw.isdigit() else raw)
    except ValueError as refused:
        raise ValueError(str(refused)) from None
    if size_bytes < 1:
        raise ValueError("at least 1 byte")
    return size_bytes


def _yes_or_no(raw: Any) -> bool:
    """A variable or a flag gives it as text."""
    found = {"true": True, "false": False}.get(str(raw).lower()) if isinstance(raw, (bool, str)) else None
    if found is None:
        raise ValueError("true or false")
    return found


def _words(raw: Any) -> tuple[str, ...]:
    """A list in the file; in a variable or a flag, words with commas between."""
    parts = raw.split(",") if isinstance(raw, str) else raw
    allowed = 'a list such as ["a", "b"]; in a variable or a flag, a,b'
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) for part in parts):
        raise ValueError(allowed)
    stripped = tuple(part.strip() for part in parts)
    if not all(stripped):
        raise ValueError(allowed)
    return stripped


def _address(text: str) -> str:
    parts = _BROKER.fullmatch(text)
    if parts is None or int(parts[2]) > 65535:
        raise ValueError("host:port, port 0 for any that is free")
    return text


Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]
Size = Annotated[int, BeforeValidator(_size)]
YesOrNo = Annotated[bool, BeforeValidator(_yes_or_no)]
MIB = 1024 * 1024


class AgentSettings(_Table):
    """[agent]: the process beside one broker: the uploader and the observers, or the observers alone."""

    log_dirs: Words = ()
    server_properties: str | None = None  # the broker's own file, for its log.dirs
    state_dir: str | None = None
    topics: Words = ()  # none named: those that the policy in force says
    exclude_topics: Words = ()
    listen: Annotated[str, AfterValidator(_address)] = "127.0.0.1:9317"
    observe_only: YesOrNo = False  # gather evidence, and touch neither the bucket nor a log
    observe_every_s: Annotated[int, _whole(1, 3600)] = 5
    heartbeat_every_s: Annotated[int, _whole(1, 3600)] = 60
    workers: Annotated[int, _whole(1, 64)] = 4
    upload_bytes_per_s: Size | None = None
    hold_segments_max: Annotated[int, _whole(0, 1_000_000)] = 200
    hold_bytes_max: Size = 20 * 1024 * MIB
    rescan_s: Annotated[int, _whole(1, 3600)] = 5
    remove_every_s: Annotated[int, _whole(1, 86_400)] = 30
    watch_every_s: Annotated[int, _whole(1, 3600)] = 30
    snapshot_every_s: Annotated[int, _whole(1, 86_400)] = 120
    metadata_partitions: Annotated[int, _whole(1, 10_000)] = 16
    metadata_replicas: Annotated[int, _whole(1, 100)] | None = None


def _tables(text: str) -> str:
    if "://" not in text and text.strip():
        return text.rstrip("/") or "/"
    url = urlsplit(text)
    if url.scheme != "s3a" or _BUCKET.fullmatch(url.netloc) is None or url.query or url.fragment:
        raise ValueError("a folder, or s3a://bucket/prefix")
    return text.rstrip("/")


class AuditSettings(_Table):
    """[audit]: the tables of evidence, and how they are filled."""

    tables: Annotated[str, AfterValidator(_tables)] | None = None
    topic: str = "__seawall_audit"
    commit_every_s: Annotated[int, _whole(1, 86_400)] = 60
    batch_records_max: Annotated[int, _whole(1, 10_000_000)] = 1_000_000


class AlertsSettings(_Table):
    """[alerts]: where alerts go, and where it is kept what was told to whom."""

    endpoints: Annotated[tuple[AlertEndpoint, ...], NoDecode, BeforeValidator(read_endpoints)] = ()
    state_dir: str | None = None
    deliver_s: Annotated[int, _whole(0, 3600)] = 60  # how long a run goes on delivering at its end


class ServeSettings(_Table):
    """[serve]: the Kafka endpoint in front of bucket and brokers. How it reaches the cluster is [kafka]'s."""

    listen: Annotated[str, AfterValidator(_address)] = "127.0.0.1:9192"
    nodes: Annotated[int, _whole(1, 16)] = 3  # brokers that it shows, on consecutive ports
    advertise: Annotated[str, AfterValidator(_address)] | None = None  # what clients are told instead
    metrics_listen: Annotated[str, AfterValidator(_address)] = "127.0.0.1:9320"
    cache_dir: str | None = None
    cache_bytes: Size = 10 * 1024 * MIB
    memory_bytes: Size = 64 * MIB  # of chunks used last, before the folder
    state_dir: str | None = None  # of its events, should an object turn out to be damaged
    skip_gaps: YesOrNo = False  # offsets on record as lost: read on behind them
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None  # set: clients show a certificate of it, and read by its ACLs
    sasl: YesOrNo = False  # clients sign in with their own PLAIN credentials, which the brokers judge
    connections_max: Annotated[int, _whole(1, 100_000)] = 1000
    connections_per_host_max: Annotated[int, _whole(1, 100_000)] | None = None
    answers_bytes: Size = 256 * MIB  # of all large answers that are on their way, whoever gave them
    drain_s: Annotated[int, _whole(0, 3600)] = 20


class ScalerSettings(_Table):
    """[scaler]: the KEDA external scaler, and the topic that its replicas share."""

    listen: Annotated[str, AfterValidator(_address)] = "127.0.0.1:9318"
    metrics_listen: Annotated[str, AfterValidator(_address)] = "127.0.0.1:9319"
    tls_cert: str | None = None
    tls_key: str | None = None
    tls_client_ca: str | None = None  # set: whoever calls shows a certificate of it
    topic: str = "__seawall_scaler"
    topic_replicas: Annotated[int, _whole(1, 100)] | None = None
    clusters: Words = ()  # NAME=FILE: other clusters, each by the [kafka] of a settings file of its own


class Settings(BaseSettings):
    """All settings. `load` reads them from their sources; called as a class, it reads only its arguments."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix=ENV_PREFIX,
        env_nested_delimiter=ENV_DELIMITER,
    )

    kafka: KafkaSettings = Field(default_factory=KafkaSettings)
    s3: S3Settings = Field(default_factory=S3Settings)
    agent: AgentSettings = Field(default_factory=AgentSettings)
    audit: AuditSettings = Field(default_factory=AuditSettings)
    alerts: AlertsSettings = Field(default_factory=AlertsSettings)
    scaler: ScalerSettings = Field(default_factory=ScalerSettings)
    serve: ServeSettings = Field(default_factory=ServeSettings)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # The default would read os.environ behind the back of whoever makes a value of this class.
        return (init_settings,)
