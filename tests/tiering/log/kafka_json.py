"""Kafka's own JSON of its messages, compared field by field with our values; and the stored vectors.

Kafka's converters leave out a tagged field that has its default, and fields that the version does not have.
So a field that is not printed must have its default here, and every printed field must be known.
"""

from __future__ import annotations

import base64
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent / "vectors"


def vectors(name: str, key: str) -> list[dict[str, Any]]:
    """The entries of `vectors/<name>.json`; its `made_by` says how they were made."""
    entries: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())[key]
    return entries


def kafka_name(name: str) -> str:
    """`leader_epoch` as Kafka writes it: `leaderEpoch`."""
    first, *rest = name.split("_")
    return ("kRaft" if first == "kraft" else first) + "".join(word.capitalize() for word in rest)


def differences(ours: Any, printed: Any, path: str = "") -> list[str]:
    """Where one of our values is not what Kafka printed, one line each."""
    if is_dataclass(ours):
        names = {kafka_name(field.name): field for field in fields(ours)}
        found = [f"{path}.{key}: printed by Kafka, unknown to us" for key in printed if key not in names]
        for key, field in names.items():
            value = getattr(ours, field.name)
            if key in printed:
                found += differences(value, printed[key], f"{path}.{key}")
            elif value != field.default:
                found.append(f"{path}.{key}: {value!r}, but Kafka has its default")
        return found
    if isinstance(ours, tuple) and isinstance(printed, list):
        if len(ours) != len(printed):
            return [f"{path}: {len(ours)} items, Kafka has {len(printed)}"]
        return [
            line
            for at, (one, other) in enumerate(zip(ours, printed, strict=True))
            for line in differences(one, other, f"{path}[{at}]")
        ]
    if isinstance(ours, bytes):
        ours = base64.b64encode(ours).decode()
    return [] if ours == printed else [f"{path}: {ours!r}, Kafka has {printed!r}"]
