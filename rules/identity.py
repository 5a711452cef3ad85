"""What a fact is about: a log, an object in the store.

Owns the two identities that events, metadata records and findings have in common. Refuses to look anything
up: these are names, not handles.

Invariant: a log is its cluster, its topic's id and a partition number. The topic's name is a label beside
it: a topic deleted and made again under the same name is another log.
"""

from __future__ import annotations

from typing import NamedTuple


class LogId(NamedTuple):
    """One partition of one topic of one cluster, for ever."""

    cluster_id: str
    topic_id: str  # as Kafka prints it: 22 characters of URL-safe base64
    partition: int


class ObjectRef(NamedTuple):
    """One version of one object, as the store confirmed it.

    `version_id` is None only in a bucket without versions. `checksum` is base64, as the store gives it.
    """

    key: str
    size_bytes: int
    checksum_algorithm: str
    checksum: str
    version_id: str | None
