"""seawall.toml to begin with: how the cluster is reached, and an agent that only looks.

Owns the file's words. Refuses to write a secret: what carries one is named with the variable that sets it.

Invariant: the file is read back as settings, and `agent.observe_only` is true in them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import SecretStr

from seawall.init.seen import Seen
from seawall.settings import Settings
from seawall.settings.names import PASSTHROUGH, variable
from tiering.cluster.interface import Unknown

_HEAD = """\
# Seawall's settings for {where}. Written by `seawall init`, which changed nothing there.
# `seawall settings` shows every setting, its value and where it comes from. Flags and SEAWALL_* go before it.
"""
_AGENT = """\
[agent]
# Only look, and tell: no bucket is touched, nothing is copied, trimmed or deleted. Take the line out when a
# policy that opts topics into tiering is in force (`seawall policy apply`): before there is nothing to copy.
observe_only = true
{log_dirs}# server_properties = "/etc/kafka/server.properties"   # in place of log_dirs: the broker's own file
# state_dir = "/var/lib/seawall"                          # its lock, and its events until Kafka has them
# listen = "127.0.0.1:9317"                               # /healthz, /readyz, /metrics
"""
_AUDIT = """\
[audit]
# tables = "/var/lib/seawall/tables"   # where evidence is kept: a folder, or s3a://bucket/prefix
"""
_ALERTS = """\
[alerts]
# state_dir = "/var/lib/seawall/alerts"   # the record of what was told to whom; keep it
# [[alerts.endpoints]]                    # as many as there are; `seawall alerts test` tries them
# name = "ops"
# format = "native"                       # alertmanager-webhook, pagerduty, slack, alertmanager
# url = "https://hooks.example.com/seawall"
# secrets = ["env:OPS_HOOK_SECRET"]       # secrets are named here, by variable or file, and never written
"""


def settings_text(settings: Settings, seen: Seen, *, where: str) -> str:
    return "\n".join(
        [
            _HEAD.format(where=where),
            *_kafka(settings),
            *_s3(settings),
            _AGENT.format(log_dirs="".join(f"{line}\n" for line in _log_dirs(seen))),
            _AUDIT,
            _ALERTS.rstrip("\n"),
            "",
        ]
    )


def _kafka(settings: Settings) -> Iterator[str]:
    yield "[kafka]"
    yield f"bootstrap = {_text(settings.kafka.bootstrap or '')}"
    yield ""
    if settings.kafka.client:
        yield f"[{PASSTHROUGH}]  # librdkafka's own names"
        for name, value in sorted(settings.kafka.client.items()):
            if isinstance(value, SecretStr):
                yield f"# {_text(name)} is a secret: set {variable(f'{PASSTHROUGH}.{name}')}"
            else:
                yield f"{_text(name)} = {_text(value)}"
    else:
        yield f"# [{PASSTHROUGH}]  # SASL and TLS, by librdkafka's own names"
        yield '# "security.protocol" = "SASL_SSL"'
        yield f"# sasl.password is a secret: set {variable(f'{PASSTHROUGH}.sasl.password')}"
    yield ""


def _s3(settings: Settings) -> Iterator[str]:
    """Credentials are boto3's affair."""
    found = settings.s3
    if found.bucket is None:
        yield "# [s3]  # needed when topics are tiered, not before; boto3's own chain finds credentials"
        yield '# bucket = "my-bucket"          # with versions kept, and Object Lock: `seawall doctor` looks'
        yield f"# prefix = {_text(found.prefix)}"
        yield '# region = "eu-central-1"'
        yield ""
        return
    yield "[s3]  # credentials are found by boto3's own chain"
    yield f"bucket = {_text(found.bucket)}"
    yield f"prefix = {_text(found.prefix)}"
    for name, value in (("endpoint_url", found.endpoint_url), ("region", found.region)):
        if value is not None:
            yield f"{name} = {_text(value)}"
    yield ""


def _log_dirs(seen: Seen) -> Iterator[str]:
    """Where brokers have the same paths, the line is the same for every agent."""
    paths = {
        broker.address.broker_id: tuple(each.path for each in broker.log_dirs)
        for broker in seen.brokers
        if not isinstance(broker.log_dirs, Unknown)
    }
    if len(paths) == len(seen.brokers) and len(set(paths.values())) == 1:
        [each] = set(paths.values())
        yield f"log_dirs = [{', '.join(map(_text, each))}]   # of each broker, by its own word"
        return
    yield "# log_dirs = []   # of the broker beside it; they are not the same on all:"
    for broker_id, each in sorted(paths.items()):
        yield f"#   broker {broker_id}: {', '.join(map(_text, each))}"


def _text(value: str) -> str:
    # A JSON string of printable characters is a TOML string, too.
    return json.dumps(value, ensure_ascii=False)
