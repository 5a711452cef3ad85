"""A role's rights in S3 as an IAM policy: what it may on keys of one cluster, and what nobody may.

Owns the form. Listings are narrowed to the prefix. The condition does not apply to a request without one, as
HeadObject: without ListBucket a key that is not there is answered with 403, and taken for a refusal.
"""

from __future__ import annotations

import json
from typing import Any

from seawall.init.permissions.roles import BUCKET_ACTIONS, NEVER, TABLE_ACTIONS, Role, actions_of

NO_BUCKET = "REPLACE-WITH-YOUR-BUCKET"
TABLES_PREFIX = "seawall-tables"


def needs_bucket(role: Role) -> bool:
    return bool(role.methods) or role.doctor or role.tables


def policy(role: Role, *, bucket: str | None, prefix: str, region: str | None) -> dict[str, Any]:
    """`prefix` is that of the cluster's keys, with its slash."""
    name = f"arn:{_partition(region)}:s3:::{bucket or NO_BUCKET}"
    statements: list[dict[str, Any]] = []
    actions = actions_of(role)
    on_bucket = [action for action in actions if action in BUCKET_ACTIONS]
    on_objects = [action for action in actions if action not in BUCKET_ACTIONS]
    if listing := [action for action in on_bucket if action.startswith("s3:List")]:
        statements.append(_listing("SegmentsListed", listing, name, prefix))
    if looking := [action for action in on_bucket if not action.startswith("s3:List")]:
        statements.append(_allow("BucketLookedAt", looking, name))
    if on_objects:
        statements.append(_allow("Segments", on_objects, f"{name}/{prefix}*"))
    if role.tables:
        under = f"{TABLES_PREFIX}/"
        statements.append(_listing("TablesListed", ["s3:ListBucket"], name, under))
        statements.append(_allow("Tables", sorted(TABLE_ACTIONS), f"{name}/{under}*"))
    statements.append(
        {"Sid": "Never", "Effect": "Deny", "Action": list(NEVER), "Resource": [name, f"{name}/*"]}
    )
    return {"Version": "2012-10-17", "Statement": statements}


def document(role: Role, *, bucket: str | None, prefix: str, region: str | None) -> str:
    return json.dumps(policy(role, bucket=bucket, prefix=prefix, region=region), indent=2) + "\n"


def _allow(sid: str, actions: list[str], resource: str) -> dict[str, Any]:
    return {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resource}


def _listing(sid: str, actions: list[str], bucket: str, prefix: str) -> dict[str, Any]:
    condition = {"StringLikeIfExists": {"s3:prefix": [f"{prefix}*"]}}
    return {**_allow(sid, actions, bucket), "Condition": condition}


def _partition(region: str | None) -> str:
    for start, partition in (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov")):
        if region is not None and region.startswith(start):
            return partition
    return "aws"
