"""The port to the network: one request, and what came of it. `http.py` is the real one.

Owns the values. Both ends are values, an answer and none: nothing that a receiver does is an exception.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from audit_engine.alerts.endpoints import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A POST."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`body` is its beginning."""

    status: int
    retry_after: str | None
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """It may have arrived all the same. `is_refused_here`: it was never sent, by a rule of ours."""

    why: str
    is_refused_here: bool = False


class Transport(Protocol):
    def post(self, endpoint: Endpoint, request: Request) -> Answer | NoAnswer:
        """Within the endpoint's time, everything included. For endpoints side by side, from any thread."""
        ...
