"""`partition.metadata` and `meta.properties`: Kafka's own files, Java's escapes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.log.instances import UUIDS
from tests.tiering.log.kafka_json import vectors
from tiering.log.errors import MalformedLine
from tiering.log.identity_files import MetaProperties, read_meta_properties, read_partition_metadata
from tiering.log.wire import ZERO_UUID

FILES = vectors("files", "files")
TOPIC_ID = "CgkTzsXgRlOwPTRJHnL2yg"
V1 = "version=1\ncluster.id=c\nnode.id=1\n"


@pytest.mark.parametrize("file", [file for file in FILES if file["kind"] == "partition_metadata"])
def test_kafkas_partition_metadata_is_read(file: dict[str, Any]) -> None:
    """The topic id that Kafka recorded, from a file whose last line Kafka does not end."""
    assert read_partition_metadata(bytes.fromhex(file["closed_hex"])) == file["topic_id"]


@pytest.mark.parametrize("file", [file for file in FILES if file["kind"] == "meta_properties"])
def test_kafkas_meta_properties_are_read(file: dict[str, Any]) -> None:
    """The values that Kafka reads back, escapes and the charset it misreads included, in either version."""
    assert read_meta_properties(bytes.fromhex(file["closed_hex"])) == MetaProperties(
        version=file["version"],
        cluster_id=file["cluster_id"],
        node_id=file["node_id"],
        directory_id=file["directory_id"],
        unrecognised={},
    )


@given(UUIDS.filter(lambda text: text != ZERO_UUID), st.sampled_from(["", "\n"]))
def test_a_topic_id_survives(topic_id: str, ending: str) -> None:
    """Every topic id comes back, with or without a last newline."""
    assert read_partition_metadata(f"version: 0\ntopic_id: {topic_id}{ending}".encode()) == topic_id


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("version: 0\n", 2),
        (f"version: 1\ntopic_id: {TOPIC_ID}", 1),
        (f"version=0\ntopic_id: {TOPIC_ID}", 1),
        (f"topic_id: {TOPIC_ID}\nversion: 0", 1),
        (f"version: 0\ntopic_id: {TOPIC_ID[:-1]}", 2),
        (f"version: 0\ntopic_id: {TOPIC_ID[:-1]}h", 2),
        (f"version: 0\ntopic_id: {ZERO_UUID}", 2),
        (f"version: 0\ntopic_id: {TOPIC_ID}\nmore: 1", 3),
    ],
)
def test_partition_metadata_that_names_no_topic_is_refused(text: str, line: int) -> None:
    """A cut, foreign, doubled or zero id is an error with its line: the directory's owner is unknown."""
    with pytest.raises(MalformedLine) as caught:
        read_partition_metadata(text.encode())

    assert caught.value.line == line


@pytest.mark.parametrize(
    "written",
    [
        "cluster.id=a=b: c",
        "cluster.id : a=b: c",
        "  cluster.id\ta=b: c",
        "cluster.id=a\\=b\\:\\u0020c",
        "#x\n!y\n\ncluster.id=\\\n   a=b: \\\n  c",
        "cluster\\.id=a=b: c\r",
    ],
)
def test_a_property_may_be_written_as_java_allows(written: str) -> None:
    """Comments, separators, escapes and continued lines mean what java.util.Properties makes of them."""
    read = read_meta_properties(f"version=1\nnode.id=1\n{written}\n".encode("iso-8859-1"))

    assert read.cluster_id == "a=b: c"


@given(st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_every_value_survives_javas_escapes(value: str) -> None:
    """A value with each character escaped by its number is read as that value."""
    escaped = "".join(f"\\u{ord(character):04x}" for character in value)

    assert read_meta_properties(f"{V1}directory.tag={escaped}\n".encode()).unrecognised == {
        "directory.tag": value
    }


def test_version_0_may_be_nearly_empty() -> None:
    """Before KRaft the file could hold next to nothing; node.id means nothing there."""
    read = read_meta_properties(b"node.id=5\n")

    assert (read.version, read.cluster_id, read.node_id) == (0, None, None)
    assert read.unrecognised == {"node.id": "5"}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("version=1\ncluster.id=c\n", 3),
        ("version=1\nnode.id=1\n", 3),
        ("version=2\nnode.id=1\ncluster.id=c\n", 1),
        (f"{V1}node.id=2\n", 4),
        (f"{V1}directory.id=short\n", 4),
        ("version=1\ncluster.id=c\nnode.id=one\n", 3),
        (f"{V1}x=\\u12\n", 4),
    ],
)
def test_meta_properties_that_name_no_one_are_refused(text: str, line: int) -> None:
    """A missing, doubled or unreadable value is an error with its line."""
    with pytest.raises(MalformedLine) as caught:
        read_meta_properties(text.encode())

    assert caught.value.line == line
