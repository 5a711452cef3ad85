"""The metadata log as Kafka's own DumpLogSegments prints it, told in the words of `world.as_expected`.

A third teller of the same story: from JSON, sharing no code with our readers, our fold or our observer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cluster.oracle import Oracle

NO_CHANGE = -2
TOPIC, BROKER = 2, 4


def story(oracle: Oracle, directory: Path) -> dict[int, tuple[int, set[tuple[Any, ...]]]]:
    """By offset: the time of a record, and what it is to be told as. The log must still begin at offset 0."""
    files = sorted(directory.glob("*.log"))
    assert int(files[0].stem) == 0
    dump = oracle.dump(files, decoder="cluster-metadata")
    teller = _Teller()
    found: dict[int, tuple[int, set[tuple[Any, ...]]]] = {}
    for path in files:
        for batch in dump[path].batches:
            records = [each for each in batch.records if each.control is None]
            messages = [each.message for each in records]
            for record, message in zip(records, messages, strict=True):
                told = set(teller.told(message, messages))
                found[record.offset] = (record.timestamp_ms, told)
    return found


class _Teller:
    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.partitions: dict[tuple[str, int], dict[str, Any]] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}

    def told(
        self, message: Mapping[str, Any], batch: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[Any, ...]]:
        data = message["data"]
        if message["type"] == "TOPIC_RECORD":
            self.names[data["topicId"]] = data["name"]
            yield ("topic_created", data["topicId"], len(_of(batch, "PARTITION_RECORD", data["topicId"])))
        elif message["type"] == "PARTITION_RECORD":
            at = (data["topicId"], data["partitionId"])
            self.partitions[at] = {**data, "unclean": data.get("leaderRecoveryState", 0) == 1}
            made = _of(batch, "PARTITION_RECORD", data["topicId"])
            if made[0] is message and not _of(batch, "TOPIC_RECORD", data["topicId"]):
                first = data["partitionId"]
                yield ("partitions_added", data["topicId"], first, first + len(made))
            yield self._leader(at)
        elif message["type"] == "PARTITION_CHANGE_RECORD":
            yield from self._changed((data["topicId"], data["partitionId"]), data)
        elif message["type"] == "REMOVE_TOPIC_RECORD":
            self.configs.pop((TOPIC, self.names.pop(data["topicId"])), None)
            yield ("topic_deleted", data["topicId"])
        elif message["type"] == "CONFIG_RECORD":
            entries = self.configs.setdefault((data["resourceType"], data["resourceName"]), {})
            was, now = entries.pop(data["name"], None), data["value"]
            if now is not None:
                entries[data["name"]] = now
            if was != now and data["resourceType"] in (TOPIC, BROKER):
                kind = "topic" if data["resourceType"] == TOPIC else "broker"
                yield ("config_effective", kind, data["resourceName"], data["name"], was, now)
        elif message["type"] == "UNREGISTER_BROKER_RECORD":
            yield ("emitter_retired", data["brokerId"])

    def _leader(self, at: tuple[str, int]) -> tuple[Any, ...]:
        now = self.partitions[at]
        in_sync, replicas = frozenset(now["isr"]), frozenset(now["replicas"])
        return ("leader_changed", *at, now["leader"], now["leaderEpoch"], in_sync, replicas, now["unclean"])

    def _changed(self, at: tuple[str, int], data: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
        was = self.partitions[at]
        now = self.partitions[at] = dict(was)
        for name in ("isr", "replicas"):
            if data.get(name) is not None:
                now[name] = data[name]
        if data.get("leaderRecoveryState", -1) != -1:
            now["unclean"] = data["leaderRecoveryState"] == 1
        if data.get("leader", NO_CHANGE) != NO_CHANGE:
            now["leader"], now["leaderEpoch"] = data["leader"], was["leaderEpoch"] + 1
            yield self._leader(at)
        elif set(was["isr"]) != set(now["isr"]):
            yield ("isr_changed", *at, now["leaderEpoch"], frozenset(now["isr"]))
        for broker in set(now["replicas"]) - set(was["replicas"]):
            yield ("replica_added", *at, broker)
        for broker in set(was["replicas"]) - set(now["replicas"]):
            yield ("replica_removed", *at, broker)


def _of(batch: Sequence[Mapping[str, Any]], kind: str, topic_id: str) -> list[Mapping[str, Any]]:
    return [each for each in batch if each["type"] == kind and each["data"]["topicId"] == topic_id]
