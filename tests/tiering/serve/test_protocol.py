"""The tables: Kafka's own, read back as they were written, and never more than an error for any bytes."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seawall.jvm.classpath import classpath
from tests.tiering.log.kafka_json import kafka_name
from tiering.log.errors import LogFormatError
from tiering.log.schema import ArrayOf, Primitive, Struct, WireType
from tiering.serve.protocol.apis import APIS, NEVER, Api, Fate
from tiering.serve.protocol.forms import Out, read_message, rows_of, write_message
from tiering.serve.protocol.frames import answer_pieces, group_of, read_answer, read_head, request_frame

TABLED = [api for api in APIS.values() if api.request is not None]
MESSAGES = [
    (api, version, table)
    for api in TABLED
    for version in api.versions
    for table in (api.request, api.response)
    if table is not None
]


def values(wire_type: WireType, version: int) -> st.SearchStrategy[Any]:
    if isinstance(wire_type, Struct):
        return messages(wire_type.of, version)
    if isinstance(wire_type, ArrayOf):
        items = st.lists(values(wire_type.item, version), max_size=3).map(tuple)
        return st.none() | items if wire_type.nullable else items
    widths = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
    if wire_type.name in widths:
        most = 2 ** widths[wire_type.name]
        return st.integers(-most, most - 1)
    return {
        "bool": st.booleans(),
        "string": st.text(max_size=5),
        "nullable string": st.none() | st.text(max_size=5),
        "uuid": st.sampled_from(["A" * 22, "CgkTzsXgRlOwPTRJHnL2yg"]),
        "bytes": st.binary(max_size=5),
        "records": st.none() | st.binary(max_size=20).map(lambda content: (content,)),
    }[wire_type.name]


def messages(table: type, version: int) -> st.SearchStrategy[Any]:
    rows = [row for row in rows_of(table) if row.is_in(version)]
    fields = {row.name: values(row.type, version) for row in rows}
    return st.fixed_dictionaries(fields).map(lambda found: table(**found))


def flat(message: Any) -> Any:
    """Records as bytes: they are read as one piece."""
    if dataclasses.is_dataclass(message) and not isinstance(message, type):
        return {each.name: flat(getattr(message, each.name)) for each in dataclasses.fields(message)}
    if isinstance(message, tuple) and message and isinstance(message[0], bytes | memoryview):
        return b"".join(message)
    return [flat(each) for each in message] if isinstance(message, tuple) else message


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_what_is_written_is_read_back(data: st.DataObject) -> None:
    """Each table in each version and form, to the last byte."""
    api, version, table = data.draw(st.sampled_from(MESSAGES))
    message = data.draw(messages(table, version))
    out = Out()
    write_message(out, message, version, api.is_flexible(version))
    whole = b"".join(out.pieces())

    assert len(whole) == out.size_bytes
    assert flat(read_message(table, version, api.is_flexible(version), whole)) == flat(message)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_frames_carry_their_headers(data: st.DataObject) -> None:
    """A request's and an answer's, in each version."""
    api = data.draw(st.sampled_from(TABLED))
    version = data.draw(st.sampled_from(api.versions))
    assert api.request is not None
    assert api.response is not None
    request = data.draw(messages(api.request, version))
    response = data.draw(messages(api.response, version))

    frame = request_frame(api, version, 77, "client", request)[4:]
    head = read_head(frame)
    answer = b"".join(answer_pieces(api, version, 77, response))

    assert (head.key, head.version, head.correlation_id, head.client_id) == (api.key, version, 77, "client")
    read: Any = read_message(api.request, version, api.is_flexible(version), frame, head.body_at)
    assert flat(read) == flat(request)
    assert int.from_bytes(answer[:4], "big") == len(answer) - 4
    assert flat(read_answer(api, version, answer[4:])) == flat(response)


def drawn(wire_type: WireType, version: int, chance: random.Random) -> Any:
    """A valid value, by plain chance."""
    if isinstance(wire_type, Struct):
        rows = [row for row in rows_of(wire_type.of) if row.is_in(version)]
        return wire_type.of(**{row.name: drawn(row.type, version, chance) for row in rows})
    if isinstance(wire_type, ArrayOf):
        return tuple(drawn(wire_type.item, version, chance) for _ in range(chance.randrange(3)))
    widths = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
    if wire_type.name in widths:
        most = 2 ** widths[wire_type.name]
        return chance.choice((-1, 0, 1, chance.randrange(-most, most)))
    text = "".join(chance.choices("abcäö", k=chance.randrange(6)))
    return {
        "bool": chance.random() < 0.5,
        "string": text,
        "nullable string": chance.choice((None, text)),
        "uuid": "CgkTzsXgRlOwPTRJHnL2yg",
        "bytes": text.encode(),
        "records": (chance.randbytes(20),),
    }[wire_type.name]


def spoiled(content: bytes, chance: random.Random) -> bytes:
    """With bits flipped, its end cut, or something in its middle left out or put in."""
    spoiled = bytearray(content)
    match chance.randrange(4):
        case 0:
            return bytes(spoiled[: chance.randrange(len(spoiled) + 1)])
        case 1:
            at = chance.randrange(len(spoiled) + 1)
            spoiled[at:at] = chance.randbytes(chance.randrange(1, 5))
        case 2:
            at = chance.randrange(len(spoiled) + 1)
            del spoiled[at : at + chance.randrange(1, 5)]
        case _:
            for _ in range(chance.randrange(1, 4) if spoiled else 0):
                spoiled[chance.randrange(len(spoiled))] ^= 1 << chance.randrange(8)
    return bytes(spoiled)


@pytest.mark.slow
def test_any_bytes_are_a_message_or_an_error() -> None:
    """30,000 frames, of noise and of messages with bits flipped and ends cut: nothing else is ever raised."""
    chance = random.Random(5)
    valid = {}
    for api, version, table in MESSAGES:
        out = Out()
        write_message(out, drawn(Struct(table), version, chance), version, api.is_flexible(version))
        valid[table, version] = b"".join(out.pieces())
        read_message(table, version, api.is_flexible(version), valid[table, version])
    outcomes: Counter[tuple[str, str]] = Counter()
    for number in range(30_000):
        api, version, table = chance.choice(MESSAGES)
        kind = "noise" if number % 3 == 0 else "spoiled"
        noise = chance.randbytes(chance.randrange(80))
        content = noise if kind == "noise" else spoiled(valid[table, version], chance)
        try:
            read_message(table, version, api.is_flexible(version), content)
            outcomes[kind, "read"] += 1
        except LogFormatError:
            outcomes[kind, "refused"] += 1
    assert outcomes["noise", "refused"] > 1000
    assert outcomes["spoiled", "refused"] > 1000
    assert outcomes["spoiled", "read"] > 1000


@pytest.mark.parametrize("api", [each for each in APIS.values() if each.fate is Fate.FORWARDED])
def test_the_group_of_a_forwarded_request_is_found(api: Api) -> None:
    """In both forms, as a client writes it."""
    from tiering.serve.protocol.apis import GROUP_IN_ARRAY

    for version in api.versions:
        flexible = api.is_flexible(version)
        in_array = version >= GROUP_IN_ARRAY.get(api.key, NEVER)
        name = b"\x06group" if flexible else b"\x00\x05group"
        body = (b"\x02" if flexible else b"\x00\x00\x00\x01") * in_array + name + b"more"
        head = api.key.to_bytes(2, "big") + version.to_bytes(2, "big") + b"\0\0\0\1" + b"\0\2me"
        frame = head + b"\0" * flexible + body
        assert group_of(read_head(frame), frame) == "group"


# Against Kafka's own definitions, which are in its jars.


@pytest.fixture(scope="module")
def definitions() -> Mapping[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for jar in classpath("broker").split(os.pathsep):
        if "kafka-clients" in os.path.basename(jar):  # noqa: PTH119 - a name in a class path
            with zipfile.ZipFile(jar) as archive:
                for name in archive.namelist():
                    if re.search(r"(^|/)message/\w+\.json$", name):
                        text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                        definition = json.loads(text)
                        found[definition["name"]] = definition
    return found


def bounds(text: str) -> tuple[int, int]:
    """A range of versions; `+` is for ever."""
    if text == "none":
        return NEVER, NEVER
    first, dash, last = text.removesuffix("+").partition("-")
    return int(first), int(last) if dash else (NEVER if text.endswith("+") else int(first))


def theirs(
    definition: dict[str, Any], fields: list[dict[str, Any]], versions: Sequence[int]
) -> Iterator[Any]:
    shared = {each["name"]: each["fields"] for each in definition.get("commonStructs", [])}
    for each in fields:
        item = each["type"].removeprefix("[]")
        inner = each.get("fields") or shared.get(item)
        first, last = bounds(each["versions"])
        known = [version for version in versions if first <= version <= last]
        if known:
            yield (
                each["name"][0].lower() + each["name"][1:],
                each["type"].startswith("[]"),
                "struct" if inner else item,
                known,
                each.get("tag"),
                list(theirs(definition, inner, known)) if inner else None,
            )


def ours(table: type, versions: Sequence[int]) -> Iterator[Any]:
    for row in rows_of(table):
        item = row.type.item if isinstance(row.type, ArrayOf) else row.type
        known = [version for version in versions if row.is_in(version)]
        if known:
            yield (
                kafka_name(row.name),
                isinstance(row.type, ArrayOf),
                item.name.removeprefix("nullable ") if isinstance(item, Primitive) else "struct",
                known,
                row.tag,
                list(ours(item.of, known)) if isinstance(item, Struct) else None,
            )


@pytest.mark.jvm
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_a_table_is_kafkas_own_definition(api: Api, definitions: Mapping[str, dict[str, Any]]) -> None:
    """Key, versions, flexible form, and each field in its order: name, type, versions and tag."""
    for kind, table in (("Request", api.request), ("Response", api.response)):
        definition = definitions[f"{api.name}{kind}"]
        assert definition["apiKey"] == api.key
        first, last = bounds(definition["validVersions"])
        assert first <= api.versions[0] <= api.versions[-1] <= last
        assert bounds(definition["flexibleVersions"])[0] == api.flexible_from
        if table is not None:
            assert list(ours(table, api.versions)) == list(
                theirs(definition, definition["fields"], api.versions)
            )
