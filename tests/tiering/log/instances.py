"""Hypothesis strategies for the messages of `tiering.log.schema`: any value a table allows in a version."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, get_type_hints

from hypothesis import strategies as st

from tiering.log.schema import Primitive, Struct, WireType, table_of

UUIDS = st.binary(min_size=16, max_size=16).map(lambda raw: base64.urlsafe_b64encode(raw).decode()[:22])
_STRINGS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)

PRIMITIVES: Mapping[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": UUIDS,
    "string": _STRINGS,
    "nullable string": st.none() | _STRINGS,
    "nullable bytes": st.none() | st.binary(max_size=200),
}


def _values(wire_type: WireType, version: int) -> st.SearchStrategy[Any]:
    if isinstance(wire_type, Primitive):
        return PRIMITIVES[wire_type.name]
    if isinstance(wire_type, Struct):
        return instances(wire_type.of, version)
    items = st.lists(_values(wire_type.item, version), max_size=4).map(tuple)
    return st.none() | items if wire_type.nullable else items


def instances(message: Any, version: int) -> st.SearchStrategy[Any]:
    """Messages of this class, with what the version does not have left at its default."""
    hints = get_type_hints(message)
    chosen = {}
    for row in table_of(message):
        if row.since > version:
            continue
        hint = hints[row.name]
        is_enum = isinstance(hint, type) and issubclass(hint, IntEnum)
        chosen[row.name] = st.sampled_from(list(hint)) if is_enum else _values(row.type, version)
    return st.builds(message, **chosen)
