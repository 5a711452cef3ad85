"""What can keep an observer from looking. Nothing follows from it for what it would have seen."""

from __future__ import annotations

from dataclasses import dataclass

from audit_engine.errors import AuditError


@dataclass(kw_only=True, eq=False)
class SourceSilent(AuditError):
    """{what} could not be {act}: {why}

    Nothing follows from that. What happens meanwhile is said later, as far as the source still tells it.
    """

    what: str
    act: str
    why: str
