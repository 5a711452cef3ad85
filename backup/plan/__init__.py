"""A plan: what is to be put back, of what, and where. Values, their file, and how people read them."""

from backup.plan.values import (
    Asked,
    AskedBy,
    Fingerprints,
    Lost,
    LostBecause,
    Origin,
    Piece,
    Plan,
    PlanBody,
    Range,
)

__all__ = [
    "Asked",
    "AskedBy",
    "Fingerprints",
    "Lost",
    "LostBecause",
    "Origin",
    "Piece",
    "Plan",
    "PlanBody",
    "Range",
]
