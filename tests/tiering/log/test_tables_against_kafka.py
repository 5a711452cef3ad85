"""Our tables against the definitions in Kafka's own jars: same fields, versions, tags and defaults."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from typing import Any

import pytest

from seawall.jvm.classpath import classpath
from tests.encode.message import default_of
from tests.tiering.log.kafka_json import kafka_name
from tiering.log.kraft.control import KRaftVersion, LeaderChange, SnapshotFooter, SnapshotHeader, Voters
from tiering.log.kraft.records import CREDENTIAL_RECORDS, METADATA_RECORDS
from tiering.log.remote_metadata import REMOTE_METADATA
from tiering.log.schema import ArrayOf, Primitive, Struct, table_of

pytestmark = pytest.mark.jvm  # the definitions are in the jars; Java itself is not started

CONTROL = {
    "LeaderChangeMessage": LeaderChange,
    "SnapshotHeaderRecord": SnapshotHeader,
    "SnapshotFooterRecord": SnapshotFooter,
    "KRaftVersionRecord": KRaftVersion,
    "VotersRecord": Voters,
}
REMOTE = {f"{table.__name__}Record": table for table in REMOTE_METADATA.values()}
KRAFT = {table.__name__: table for table in METADATA_RECORDS.values()}
TABLES: dict[str, Any] = {**CONTROL, **REMOTE, **KRAFT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One field of a message in terms that both sides share; `default` only where it can apply."""

    name: str
    type: str
    since: int
    tag: int | None
    default: object
    fields: tuple[Row, ...] = ()


@pytest.fixture(scope="module")
def definitions() -> Mapping[str, dict[str, Any]]:
    """Every message definition in the broker's jars, by its name."""
    found: dict[str, dict[str, Any]] = {}
    for jar in classpath("broker").split(os.pathsep):
        if "kafka-" not in os.path.basename(jar):  # noqa: PTH119 - a name in a class path
            continue
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if re.search(r"(^|/)(message|metadata)/\w+\.json$", name):
                    text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                    definition = json.loads(text)
                    found[definition["name"]] = definition
    return found


def versions_of(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def their_rows(definition: dict[str, Any], fields: list[dict[str, Any]]) -> Iterator[Row]:
    shared = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
    for each in fields:
        item = each["type"].removeprefix("[]")
        inner = each.get("fields") or shared.get(item) or []
        since = int(each["versions"].removesuffix("+"))
        nullable = "nullableVersions" in each
        kind = "struct" if inner else item
        if each["type"].startswith("[]"):
            kind = f"{'nullable ' * nullable}array of {kind}"
        elif nullable:
            kind = f"nullable {kind}"
        yield Row(
            name=each["name"][0].lower() + each["name"][1:],
            type=kind,
            since=since,
            tag=each.get("tag"),
            default=their_default(each) if since or "tag" in each else None,
            fields=tuple(their_rows(definition, inner)),
        )


def their_default(each: dict[str, Any]) -> object:
    if each.get("default") == "null":
        return None
    if each["type"].startswith("[]"):
        return ()
    if each["type"] == "uuid":
        return "A" * 22
    if each["type"] == "bool":
        return each.get("default", "false") == "true"
    return int(each.get("default", 0)) if "int" in each["type"] else each.get("default", "")


def our_rows(table: type) -> Iterator[Row]:
    for row in table_of(table):
        of_item = row.type.item if isinstance(row.type, ArrayOf) else row.type
        kind = of_item.name if isinstance(of_item, Primitive) else "struct"
        if isinstance(row.type, ArrayOf):
            kind = f"{'nullable ' * row.type.nullable}array of {kind}"
        default = default_of(table, row)
        assert (default is MISSING) == (not row.since and row.tag is None), (table, row)
        yield Row(
            name=kafka_name(row.name),
            type=kind,
            since=row.since,
            tag=row.tag,
            default=None if default is MISSING else default,
            fields=tuple(our_rows(of_item.of)) if isinstance(of_item, Struct) else (),
        )


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_is_kafkas_own_definition(name: str, definitions: Mapping[str, dict[str, Any]]) -> None:
    """Field by field, in the order of the wire: name, type, first version, tag and default."""
    definition = definitions[name]

    assert list(our_rows(TABLES[name])) == list(their_rows(definition, definition["fields"]))
    assert TABLES[name].versions == versions_of(definition["validVersions"])
    if name not in CONTROL:
        assert TABLES[name].api_key == definition["apiKey"]


def test_no_record_type_of_kafka_is_unknown_to_us(definitions: Mapping[str, dict[str, Any]]) -> None:
    """Each metadata record in the jars is read, or holds credentials and is passed over by intent."""
    theirs = {
        definition["apiKey"]
        for definition in definitions.values()
        if definition["type"] == "metadata" and definition["name"] not in REMOTE
    }

    assert theirs == METADATA_RECORDS.keys() | CREDENTIAL_RECORDS
