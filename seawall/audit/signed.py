"""Statements as a file that can be handed on, and held against its signature.

    {"seawall_statements": [...], "signature": "v1,<base64>"}

What the audit stated has a hash of its own, which whoever changes it can make anew. The signature is
HMAC-SHA256 over the one spelling of all of it, the run and its evidence included.

Owns the form. Refuses a file in which anything was changed, left out or added.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from backup.signing import is_signed, signature
from seawall.errors import SeawallError
from tiering.segments.json_fields import canonical

NAME = "seawall_statements"


@dataclass(kw_only=True, eq=False)
class StatementsNotBelieved(SeawallError):
    """{path} has no statements that can be believed: {why}"""

    exit_code: ClassVar[int] = 78

    path: str
    why: str


def signed(statements: Sequence[Mapping[str, Any]], key: bytes) -> str:
    """The whole file."""
    members = {NAME: [*statements]}
    return json.dumps({**members, "signature": signature(canonical(members), key)}, indent=1) + "\n"


def checked(content: bytes, key: bytes, path: str) -> list[dict[str, Any]]:
    """The statements, if whoever signed them had the key, and nothing is otherwise since."""
    try:
        whole = json.loads(content)
        found: list[dict[str, Any]] = whole[NAME]
        spelled = canonical({NAME: found})
        told = whole["signature"]
    except (ValueError, KeyError, TypeError):
        raise StatementsNotBelieved(path=path, why="it has not the form of any") from None
    if set(whole) != {NAME, "signature"}:
        raise StatementsNotBelieved(path=path, why="it has more in it")
    if not is_signed(spelled, key, told):
        raise StatementsNotBelieved(path=path, why="they were changed, or are not signed by this key")
    return found
