"""The option that takes signed plans alone, and a plan as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from backup.plan.file import read_plan
from backup.plan.values import Plan
from seawall.backup.keys import key_in

SignedWith: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--signed-with",
        metavar="FILE",
        help="Refuse a plan that `seawall backup plan --sign-with` did not sign with this whsec_... secret.",
    ),
]


def plan_from(path: Path, signed_with: Path | None) -> Plan:
    return read_plan(path, None if signed_with is None else key_in(signed_with))
