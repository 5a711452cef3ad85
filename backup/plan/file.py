"""A plan as a file: JSON that a person can read from the top, and a hash that no edit survives.

    {
     "seawall_plan": "<SHA-256 of the body's one spelling>",
     "reads": ["what the plan says", "line by line"],
     "body": { ... },
     "signature": "v1,<base64>"          where it was signed: HMAC-SHA256 over what it is and the hash
    }

Owns the form. Refuses a file whose body has another hash, or whose lines are not what the body says: who
edits either is told, and nothing is carried out.

The hash keeps a plan from being changed by mistake; whoever changes one on purpose can hash it anew, and
cannot sign it. Who reads with a key takes no plan that is not signed with it.

Invariant: read_plan(write_plan(p)) == p; any other byte in a value is PlanEdited or PlanUnusable.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from backup.errors import PlanEdited, PlanUnusable
from backup.plan.codec import body_of, hash_of, members_of
from backup.plan.render import lines_of
from backup.plan.values import Plan
from backup.signing import is_signed, signature
from tiering.segments.errors import SegmentMetadataError
from tiering.segments.json_fields import parse_object

FILE_BYTES_MAX = 1 << 30
_NAMES = {"seawall_plan", "reads", "body"}


def text_of(plan: Plan, key: bytes | None = None) -> str:
    """The whole file."""
    members = {"seawall_plan": plan.hash, "reads": lines_of(plan), "body": members_of(plan.body)}
    if key is not None:
        members["signature"] = signature(_signed(plan), key)
    return json.dumps(members, indent=1, ensure_ascii=True, allow_nan=False) + "\n"


def _signed(plan: Plan) -> bytes:
    return f"seawall_plan {plan.hash}".encode("ascii")  # a report's signature is never a plan's


def write_plan(path: Path, plan: Plan, key: bytes | None = None) -> None:
    """Whole, or not at all; never over another file."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("x", encoding="ascii") as file:
            file.write(text_of(plan, key))
            file.flush()
            os.fsync(file.fileno())
        os.link(unfinished, path)  # unlike a rename, it refuses where something is
    finally:
        unfinished.unlink(missing_ok=True)


def read_plan(path: Path, key: bytes | None = None) -> Plan:
    """Raises PlanUnusable, PlanEdited, or what the operating system says."""
    with path.open("rb") as file:
        content = file.read(FILE_BYTES_MAX + 1)
    return plan_of_text(content, str(path), key)


def plan_of_text(content: bytes, path: str, key: bytes | None = None) -> Plan:
    """The same of a file's content; `path` is for what is said of it."""
    try:
        members = parse_object(content, path)
        if set(members) - {"signature"} != _NAMES or not isinstance(members["seawall_plan"], str):
            raise PlanUnusable(path=path, why="it has not the members of a plan")
        body = body_of(members["body"])
    except SegmentMetadataError as refused:
        raise PlanUnusable(path=path, why=str(refused)) from None
    plan = Plan(hash=hash_of(body), body=body)
    if members["seawall_plan"] != plan.hash:
        raise PlanEdited(path=path, why=f"its hash is {plan.hash}, and it says {members['seawall_plan']}")
    if members["body"] != members_of(body):
        raise PlanEdited(path=path, why="its body is not spelled as it was written")
    if members["reads"] != lines_of(plan):
        raise PlanEdited(path=path, why="its lines do not say what its body does")
    if key is not None and "signature" not in members:
        raise PlanEdited(path=path, why="it is not signed")
    if key is not None and not is_signed(_signed(plan), key, members["signature"]):
        raise PlanEdited(path=path, why="its signature is not by this key")
    return plan
