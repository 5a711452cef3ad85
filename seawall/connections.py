"""What the verbs and the agent reach by the settings: the cluster, the bucket, and the keys in it.

Owns how settings become arguments of the adapters, once for all verbs. Opens nothing by itself but what it is
asked for; refuses, with what to set, where a setting is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seawall import collecting
from seawall.settings import Settings
from seawall.settings.errors import SettingsError

if TYPE_CHECKING:  # each of these brings a client library, and a verb needs but one or two
    from tiering.cluster.kafka import KafkaCluster
    from tiering.store.keys import KeyLayout
    from tiering.store.patient import PatientStore
    from tiering.store.retry import Retried, RetryPolicy

ANSWER_TIMEOUT_S = 10.0


@dataclass(kw_only=True, eq=False)
class NotSet(SettingsError):
    """{setting} is not set, and without it there is no {what}

    Set it in seawall.toml, as {variable}, or by {flag}.
    """

    setting: str
    what: str
    variable: str
    flag: str


def kafka_config(settings: Settings, *, client_id: str = "seawall") -> dict[str, str]:
    """The configuration of a client, secrets and all. What librdkafka would log is part of our errors."""
    if settings.kafka.bootstrap is None:
        raise NotSet(
            setting="kafka.bootstrap",
            what="cluster to ask",
            variable="SEAWALL_KAFKA__BOOTSTRAP",
            flag="--bootstrap HOST:PORT,...",
        )
    return {"client.id": client_id, "log_level": "0", **settings.kafka.librdkafka()}


def open_cluster(settings: Settings, *, client_id: str = "seawall") -> KafkaCluster:
    """The cluster by its admin API."""
    with collecting.imports():
        from tiering.cluster.kafka import KafkaCluster

    return KafkaCluster(
        kafka_config(settings, client_id=client_id),
        monotonic_s=time.monotonic,
        answer_timeout_s=ANSWER_TIMEOUT_S,
    )


def segment_store(
    settings: Settings,
    *,
    policy: RetryPolicy | None = None,
    bytes_per_s: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
    on_retry: Callable[[Retried], None] = lambda _: None,
) -> PatientStore:
    """The bucket that segments go to."""
    with collecting.imports():
        from tiering.store.patient import patient
        from tiering.store.s3 import S3Store, S3StoreSettings

    if settings.s3.bucket is None:
        raise NotSet(
            setting="s3.bucket", what="bucket to use", variable="SEAWALL_S3__BUCKET", flag="--bucket NAME"
        )
    store = S3Store(
        S3StoreSettings(
            bucket=settings.s3.bucket,
            endpoint_url=settings.s3.endpoint_url,
            region=settings.s3.region,
            # Stores other than AWS's own rarely have a name in DNS for each bucket.
            addressing_style="path" if settings.s3.endpoint_url else "auto",
            copies_where_absent=settings.s3.endpoint_url is None,
        )
    )
    return patient(store, policy=policy, bytes_per_s=bytes_per_s, sleep=sleep, on_retry=on_retry)


def key_layout(settings: Settings) -> KeyLayout:
    """Where each segment's objects stand in the bucket."""
    from tiering.store.keys import KeyLayout

    return KeyLayout(settings.s3.prefix)
