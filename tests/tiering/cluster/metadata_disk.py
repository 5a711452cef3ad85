"""A `__cluster_metadata-0` directory in the hands of a test that does to it what a broker does.

Owns the files and the whole truth behind them: every batch that the log holds now, also those whose segments
are deleted. Written with tests/encode, which shares no code with the readers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from tests.encode.message import encode_framed, encode_message
from tests.encode.record_batch import PlainRecord, encode_batch
from tests.tiering.cluster.histories import T0_MS, VERSIONS, changes, metadata_batch
from tiering.cluster.fold import fold
from tiering.cluster.image import Change, ClusterImage
from tiering.log.kraft.control import SnapshotFooter, SnapshotHeader
from tiering.log.kraft.nodes import RegisterBrokerRecord
from tiering.log.kraft.topics import ConfigRecord, PartitionRecord, TopicRecord

CONTROL_ATTRIBUTE = 0x20


class MetadataDisk:
    """The log of one replica of the quorum. Batches are the unit of everything, as they are for Kafka."""

    def __init__(self, folder: Path) -> None:
        self.directory = folder / "__cluster_metadata-0"
        self.directory.mkdir()
        self.batches: list[list[Change]] = []
        self.epoch = 1
        self.committed = 0
        self._write_segments([0])

    @property
    def end_offset(self) -> int:
        return self.batches[-1][-1].offset + 1 if self.batches else 0

    @property
    def log(self) -> list[Change]:
        return list(chain.from_iterable(self.batches))

    @property
    def boundaries(self) -> list[int]:
        return [0, *(batch[-1].offset + 1 for batch in self.batches)]

    @property
    def segment_bases(self) -> list[int]:
        return sorted(int(path.stem) for path in self.directory.glob("*.log"))

    @property
    def snapshot_ends(self) -> list[int]:
        return sorted(int(path.name[:20]) for path in self.directory.glob("*.checkpoint"))

    def image_at(self, offset: int) -> ClusterImage:
        return fold(ClusterImage(), [each for each in self.log if each.offset < offset])

    def append(self, records: Sequence[Any]) -> None:
        """One batch, of the current epoch, behind the last one."""
        batch = changes(records, start=self.end_offset, epoch=self.epoch)
        self.batches.append(batch)
        with self._path(self.segment_bases[-1]).open("ab") as file:
            file.write(metadata_batch(batch))

    def append_half(self, records: Sequence[Any]) -> None:
        """A write that a reader catches in the middle; `finish_half` takes the half away again."""
        batch = changes(records, start=self.end_offset, epoch=self.epoch)
        raw = metadata_batch(batch)
        with self._path(self.segment_bases[-1]).open("ab") as file:
            file.write(raw[: len(raw) // 2])

    def finish_half(self) -> None:
        self._write_segments(self.segment_bases)

    def roll(self) -> None:
        if self.end_offset > self.segment_bases[-1]:
            self._path(self.end_offset).touch()

    def commit(self, offset: int) -> None:
        self.committed = max(self.committed, offset)

    def elect(self, keep_to: int) -> None:
        """Another controller: its epoch is new, and what this log has beyond `keep_to` it does not have."""
        assert keep_to >= self.committed
        self.batches = [batch for batch in self.batches if batch[-1].offset < keep_to]
        self.epoch += 1
        bases = [base for base in self.segment_bases if base <= self.end_offset]
        self._write_segments(bases)

    def snapshot(self, offset: int) -> None:
        """What Kafka writes of the state below a committed offset."""
        assert offset <= self.committed
        epoch = next(batch[-1].epoch for batch in self.batches if batch[-1].offset + 1 == offset)
        path = self.directory / f"{offset:020d}-{epoch:010d}.checkpoint"
        path.write_bytes(snapshot_bytes(self.image_at(offset)))

    def delete_behind_snapshot(self) -> None:
        """Segments that end at or below the newest snapshot go; so do the snapshots before it."""
        newest = self.snapshot_ends[-1] if self.snapshot_ends else 0
        bases = self.segment_bases
        for base, end in pairwise(bases):
            if end <= newest:
                self._path(base).unlink()
        for path in self.directory.glob("*.checkpoint"):
            if int(path.name[:20]) < newest:
                path.unlink()

    def replace_by_snapshot(self) -> None:
        """What a follower does that is too far behind: everything goes, and the log begins at a snapshot."""
        newest = self.snapshot_ends[-1]
        for path in self.directory.glob("*.log"):
            path.unlink()
        self._write_segments([newest])

    def _path(self, base: int) -> Path:
        return self.directory / f"{base:020d}.log"

    def _write_segments(self, bases: Sequence[int]) -> None:
        for path in self.directory.glob("*.log"):
            path.unlink()
        for base, end in zip(bases, [*bases[1:], None], strict=True):
            held = [
                batch
                for batch in self.batches
                if batch[0].offset >= base and (end is None or batch[0].offset < end)
            ]
            self._path(base).write_bytes(b"".join(map(metadata_batch, held)))


def snapshot_bytes(image: ClusterImage, *, footer: bool = True) -> bytes:
    """A whole snapshot: header, records, footer, each in its batch, with offsets from 0."""
    header = SnapshotHeader(version=0, last_contained_log_timestamp=T0_MS)
    records = snapshot_records(image)
    batches = [_control(0, header)]
    if records:
        batches.append(
            encode_batch(
                [
                    PlainRecord(
                        offset=offset,
                        timestamp_ms=T0_MS,
                        value=encode_framed(record, VERSIONS.get(type(record), 0)),
                    )
                    for offset, record in enumerate(records, 1)
                ]
            )
        )
    if footer:
        batches.append(_control(len(records) + 1, SnapshotFooter(version=0)))
    return b"".join(batches)


def snapshot_records(image: ClusterImage) -> list[Any]:
    """The records from which the image can be made again."""
    records: list[Any] = [
        RegisterBrokerRecord(
            broker_id=each.broker_id,
            incarnation_id=each.incarnation_id,
            broker_epoch=each.broker_epoch,
            end_points=(),
            features=(),
            rack=each.rack,
            fenced=each.fenced,
            in_controlled_shutdown=each.in_controlled_shutdown,
            log_dirs=each.log_dirs,
        )
        for each in image.brokers.values()
    ]
    records += [TopicRecord(name=name, topic_id=topic_id) for topic_id, name in image.topics.items()]
    records += [
        PartitionRecord(
            partition_id=key.partition,
            topic_id=key.topic_id,
            replicas=state.replicas,
            isr=state.isr,
            removing_replicas=state.removing_replicas,
            adding_replicas=state.adding_replicas,
            leader=-1 if state.leader_id is None else state.leader_id,
            leader_recovery_state=state.recovery,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            directories=state.directories,
        )
        for key, state in image.partitions.items()
    ]
    records += [
        ConfigRecord(resource_type=key.resource, resource_name=key.name, name=name, value=value)
        for key, entries in image.configs.items()
        for name, value in entries.items()
    ]
    return records


def _control(offset: int, message: Any) -> bytes:
    record = PlainRecord(
        offset=offset,
        timestamp_ms=T0_MS,
        key=struct.pack(">hh", 0, message.api_key),
        value=encode_message(message, 0),
    )
    return encode_batch([record], attributes=CONTROL_ATTRIBUTE)
