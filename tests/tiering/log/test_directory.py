"""Directories: every name that Kafka gives is classified, and closed segments told from the active one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tiering.log.directory import (
    DirectoryState,
    FileKind,
    FileState,
    PartitionName,
    classify,
    is_log_directory,
    partition_name,
    read_log_directory,
    read_partition_directory,
)
from tiering.log.errors import Malformed

BASE = "00000000000000004928"
UNIQUE = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("name", "kind", "state", "offset"),
    [
        (f"{BASE}.log", FileKind.SEGMENT, FileState.LIVE, 4928),
        (f"{BASE}.log.deleted", FileKind.SEGMENT, FileState.DELETED, 4928),
        (f"{BASE}.log.cleaned", FileKind.SEGMENT, FileState.CLEANED, 4928),
        (f"{BASE}.log.swap", FileKind.SEGMENT, FileState.SWAP, 4928),
        (f"{BASE}.index", FileKind.OFFSET_INDEX, FileState.LIVE, 4928),
        (f"{BASE}.timeindex.deleted", FileKind.TIME_INDEX, FileState.DELETED, 4928),
        (f"{BASE}.txnindex", FileKind.TRANSACTION_INDEX, FileState.LIVE, 4928),
        (f"{BASE}.snapshot", FileKind.PRODUCER_SNAPSHOT, FileState.LIVE, 4928),
        (f"{BASE}.snapshot.deleted", FileKind.PRODUCER_SNAPSHOT, FileState.DELETED, 4928),
        (f"{BASE}-0000000003.checkpoint", FileKind.KRAFT_SNAPSHOT, FileState.LIVE, 4928),
        (f"{BASE}-0000000003.checkpoint.part", FileKind.KRAFT_SNAPSHOT, FileState.TEMPORARY, 4928),
        ("leader-epoch-checkpoint", FileKind.LEADER_EPOCHS, FileState.LIVE, None),
        ("leader-epoch-checkpoint.tmp", FileKind.LEADER_EPOCHS, FileState.TEMPORARY, None),
        ("partition.metadata", FileKind.PARTITION_METADATA, FileState.LIVE, None),
        ("quorum-state", FileKind.QUORUM_STATE, FileState.LIVE, None),
        ("remote_log_snapshot", FileKind.REMOTE_SNAPSHOT, FileState.LIVE, None),
        ("4928.log", FileKind.UNKNOWN, FileState.LIVE, None),
        (f"{BASE}.log.bak", FileKind.UNKNOWN, FileState.LIVE, None),
        ("notes.txt", FileKind.UNKNOWN, FileState.LIVE, None),
    ],
)
def test_each_name_is_what_kafka_means_by_it(
    name: str, kind: FileKind, state: FileState, offset: int | None
) -> None:
    """Kind, state and offset come from the name; what Kafka never names so is UNKNOWN."""
    file = classify(Path(name))

    assert (file.kind, file.state, file.offset) == (kind, state, offset)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", PartitionName(topic="orders", partition=0, state=DirectoryState.LIVE)),
        ("a.b-c-12", PartitionName(topic="a.b-c", partition=12, state=DirectoryState.LIVE)),
        (
            f"orders-3.{UNIQUE}-delete",
            PartitionName(topic="orders", partition=3, state=DirectoryState.DELETE),
        ),
        (
            f"orders-3.{UNIQUE}-future",
            PartitionName(topic="orders", partition=3, state=DirectoryState.FUTURE),
        ),
        (f"orders-3.{UNIQUE}-stray", PartitionName(topic="orders", partition=3, state=DirectoryState.STRAY)),
        ("remote-log-index-cache", None),
        ("orders", None),
        (f"orders.{UNIQUE}-delete", None),
    ],
)
def test_a_directory_name_gives_topic_partition_and_state(name: str, expected: PartitionName | None) -> None:
    """Topics may hold dots and dashes; what is no partition's name is None."""
    assert partition_name(name) == expected


def make(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"x" * len(name))
    return folder


def test_all_but_the_last_segment_are_closed_and_end_at_the_next_base(tmp_path: Path) -> None:
    """Segments come by base offset; only live `.log` files count."""
    path = make(
        tmp_path / "orders-0",
        "00000000000000000200.log",
        "00000000000000000000.log",
        "00000000000000000100.log",
        "00000000000000000050.log.deleted",
        "00000000000000000300.log.swap",
        "00000000000000000100.index",
    )

    segments = read_partition_directory(path).segments

    assert [(s.base_offset, s.end_offset, s.is_closed) for s in segments] == [
        (0, 100, True),
        (100, 200, True),
        (200, None, False),
    ]
    assert segments[1].side_file(FileKind.OFFSET_INDEX) == path / "00000000000000000100.index"


def test_unknown_files_are_listed_not_skipped(tmp_path: Path) -> None:
    """A file that fits no name is there to be seen."""
    directory = read_partition_directory(make(tmp_path / "orders-0", "core.1234", f"{BASE}.log"))

    assert [file.path.name for file in directory.unknown] == ["core.1234"]


def test_a_directory_that_is_no_partition_is_refused(tmp_path: Path) -> None:
    """A name without a partition number is an error, not an empty log."""
    with pytest.raises(Malformed):
        read_partition_directory(make(tmp_path / "orders"))


def test_a_log_dir_lists_partitions_and_strangers(tmp_path: Path) -> None:
    """Kafka's own files are neither; a stranger is listed."""
    root = make(tmp_path / "kafka", "meta.properties", ".lock", "log-start-offset-checkpoint", "stranger")
    for name in ("orders-0", f"orders-1.{UNIQUE}-delete", "remote-log-index-cache", "lost+found"):
        (root / name).mkdir()

    listing = read_log_directory(root)

    assert [p.name for p in listing.partitions] == ["orders-0", f"orders-1.{UNIQUE}-delete"]
    assert [p.name for p in listing.unknown] == ["lost+found", "stranger"]
    assert is_log_directory(root)


def test_a_folder_without_anything_of_kafkas_is_no_log_dir(tmp_path: Path) -> None:
    """Neither an empty folder nor one of other files is taken for a log dir."""
    assert not is_log_directory(make(tmp_path / "home", "notes.txt"))
