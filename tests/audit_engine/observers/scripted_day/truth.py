"""What happened, by Kafka's own word: DumpLogSegments with its decoders, and the admin API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # not re-exported

from seawall.local import kafka
from seawall.local.broker import LocalCluster
from tests.cluster.cases_logs import partition_folder
from tests.cluster.dump_values import DumpedFile
from tests.cluster.oracle import Oracle

DEADLINE_S = 30.0
NO_LEADER_CHANGE = -2
TOPIC_RESOURCE = 2


class Segment(NamedTuple):
    """A closed segment by its batches."""

    base_offset: int
    end_offset: int
    size_bytes: int
    max_timestamp_ms: int


class Replica(NamedTuple):
    """What the files of one replica hold. `epochs`: the first offset that was written in each."""

    closed: tuple[Segment, ...]
    epochs: Mapping[int, int]
    end_offset: int


def replicas(oracle: Oracle, cluster: LocalCluster, topic: str) -> dict[int, Replica]:
    """Of each broker, in one run of the tool."""
    files = {
        node_id: sorted(partition_folder(cluster, topic, node_id=node_id).glob("*.log"))
        for node_id in cluster.nodes
    }
    dump = oracle.dump([path for paths in files.values() for path in paths], contents=False)
    return {node_id: _replica([dump[path] for path in paths]) for node_id, paths in files.items()}


def _replica(files: list[DumpedFile]) -> Replica:
    bases = [int(each.path.stem) for each in files]
    closed = tuple(
        Segment(
            base,
            end,
            sum(batch.size_bytes for batch in file.batches),
            max(batch.max_timestamp_ms for batch in file.batches),
        )
        for file, base, end in zip(files, bases, bases[1:], strict=False)
    )
    epochs: dict[int, int] = {}
    for file in files:
        for batch in file.batches:
            epochs.setdefault(batch.leader_epoch, batch.base_offset)
    last = [batch.last_offset for file in files for batch in file.batches]
    return Replica(closed, epochs, last[-1] + 1)


class Told(NamedTuple):
    """What the metadata log says of one name, record by record, each with its offset."""

    created: list[tuple[int, str]]
    deleted: list[tuple[int, str]]
    leaders: list[tuple[int, str, int, int]]  # topic id, leader, leader epoch
    in_sync: list[tuple[int, str, tuple[int, ...]]]  # without another leader
    settings: list[tuple[int, str, str | None]]  # key, value


def metadata(oracle: Oracle, cluster: LocalCluster, topic: str) -> Told:
    folder = cluster.controller.log_dirs[0] / "__cluster_metadata-0"
    logs = sorted(folder.glob("*.log"))
    dump = oracle.dump(logs, decoder="cluster-metadata")
    told = Told([], [], [], [], [])
    epochs: dict[str, int] = {}
    for record in (each for path in logs for each in dump[path].records):
        if record.control is None:
            _note(told, epochs, topic, record.offset, record.message["type"], record.message["data"])
    return told


def _note(
    told: Told, epochs: dict[str, int], topic: str, offset: int, kind: str, fields: dict[str, Any]
) -> None:
    """`epochs`: the leader epoch of each topic id of that name."""
    topic_id = fields.get("topicId", "")
    if kind == "TOPIC_RECORD" and fields["name"] == topic:
        told.created.append((offset, topic_id))
        epochs[topic_id] = -1
    elif kind == "CONFIG_RECORD":
        if (fields["resourceType"], fields["resourceName"]) == (TOPIC_RESOURCE, topic):
            told.settings.append((offset, fields["name"], fields["value"]))
    elif topic_id not in epochs:
        return
    elif kind == "REMOVE_TOPIC_RECORD":
        told.deleted.append((offset, topic_id))
    elif kind == "PARTITION_RECORD":
        epochs[topic_id] = fields["leaderEpoch"]
        told.leaders.append((offset, topic_id, fields["leader"], fields["leaderEpoch"]))
    elif kind == "PARTITION_CHANGE_RECORD":
        if fields.get("leader", NO_LEADER_CHANGE) != NO_LEADER_CHANGE:
            epochs[topic_id] += 1
            told.leaders.append((offset, topic_id, fields["leader"], epochs[topic_id]))
        elif fields.get("isr") is not None:
            told.in_sync.append((offset, topic_id, tuple(fields["isr"])))


class RemoteRecord(NamedTuple):
    """A record of `__remote_log_metadata`. Kafka's last offset is made the end of a half-open range."""

    offset: int
    topic_id: str
    segment_id: str
    state: str
    broker_id: int
    at_ms: int
    base_offset: int
    end_offset: int
    size_bytes: int | None  # of a first record only
    max_timestamp_ms: int | None
    epochs: tuple[tuple[int, int], ...] | None


_SEGMENT = re.compile(
    r"topicIdPartition=(?P<topic_id>[\w-]{22}):(?P<topic>[\w.-]+)-\d+, id=(?P<segment_id>[\w-]{22})"
)


def remote_records(oracle: Oracle, cluster: LocalCluster, topic: str) -> list[RemoteRecord]:
    logs = sorted(partition_folder(cluster, "__remote_log_metadata").glob("*.log"))
    dump = oracle.dump(logs, decoder="remote-log-metadata")
    found: list[RemoteRecord] = []
    known: dict[str, RemoteRecord] = {}
    for record in (each for path in logs for each in dump[path].records):
        text = record.payload or ""
        named = _SEGMENT.search(text)
        assert named is not None, text
        if named["topic"] != topic:
            continue
        first = known.get(named["segment_id"])
        is_first = text.startswith("RemoteLogSegmentMetadata{")
        assert is_first == (first is None), text
        base, end = (
            (_number(text, "startOffset"), _number(text, "endOffset") + 1) if first is None else first[6:8]
        )
        epochs = re.search(r"segmentLeaderEpochs=\{(.*?)\}", text)
        read = RemoteRecord(
            offset=record.offset,
            topic_id=named["topic_id"],
            segment_id=named["segment_id"],
            state=_word(text, "state"),
            broker_id=_number(text, "brokerId"),
            at_ms=_number(text, "eventTimestampMs"),
            base_offset=base,
            end_offset=end,
            size_bytes=_number(text, "segmentSizeInBytes") if first is None else first.size_bytes,
            max_timestamp_ms=_number(text, "maxTimestampMs") if first is None else first.max_timestamp_ms,
            epochs=_epochs(epochs[1]) if epochs is not None else (first.epochs if first else None),
        )
        known.setdefault(read.segment_id, read)
        found.append(read)
    return found


def remote_ranges(records: Iterable[RemoteRecord], state: str) -> list[tuple[int, int]]:
    """The ranges of the segments that came to this state, in order."""
    return sorted((each.base_offset, each.end_offset) for each in records if each.state == state)


def remote_files(cluster: LocalCluster, topic: str) -> list[Path]:
    """LocalTieredStorage's copies: `<topic>-<partition>-<topic id>/<base>-<segment id>.log`."""
    return sorted(cluster.remote_folder.glob(f"kafka-tiered-storage/{topic}-0-*/*.log"))


def earliest(cluster: LocalCluster, topic: str) -> int:
    """The first readable offset, by the leader."""
    admin = kafka.admin_client(cluster.bootstrap)
    asked = TopicPartition(topic, 0)
    spec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
    offset: int = admin.list_offsets({asked: spec})[asked].result(DEADLINE_S).offset
    return offset


def _number(text: str, name: str) -> int:
    return int(_word(text, name))


def _word(text: str, name: str) -> str:
    found = re.search(rf"\b{name}=([\w-]+)", text)
    assert found is not None, f"no {name} in {text}"
    return found[1]


def _epochs(text: str) -> tuple[tuple[int, int], ...]:
    pairs = (each.split("=") for each in text.split(", ") if each)
    return tuple((int(epoch), int(offset)) for epoch, offset in pairs)
