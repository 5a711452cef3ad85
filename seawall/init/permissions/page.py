"""permissions/README.md: the roles, for people, with the reason of each right."""

from __future__ import annotations

from collections.abc import Iterator

from seawall.init.permissions.iam import NO_BUCKET, needs_bucket
from seawall.init.permissions.roles import (
    CHOSEN_TOPICS,
    NEVER,
    ROLES,
    TABLE_ACTIONS,
    KafkaRight,
    Resource,
    Role,
    actions_of,
)


def page(*, bucket: str | None, prefix: str, where: str) -> str:
    lines = [
        f"# Permissions of Seawall's roles, for {where}",
        "",
        "Written by `seawall init`, which changed nothing. Each role has the least that it works with; give",
        "each its own principal. `kafka-ROLE.sh` has the commands for Kafka's own `kafka-acls`,",
        f"`iam-ROLE.json` the IAM policy, for keys under `{prefix}` of the bucket `{bucket or NO_BUCKET}`.",
        "",
        "Begin with `agent-observe`, `ingest` and `reader`. No role may do any of these, whatever else it is",
        f"allowed: {', '.join(f'`{action}`' for action in NEVER)}. Only the bucket's own lifecycle removes a",
        "version.",
        "",
        "Beside these rights an agent reads the broker's log dirs: run it as the broker's user, or in its",
        "group. It never writes there. A bucket with SSE-KMS needs the key's rights, too.",
    ]
    for role in ROLES:
        lines += ["", *_role(role)]
    return "\n".join(lines) + "\n"


def _role(role: Role) -> Iterator[str]:
    yield f"## {role.name}"
    yield role.does
    yield ""
    yield "| Kafka: on | may | for |"
    yield "|---|---|---|"
    for right in role.kafka:
        yield f"| {_subject(right)} | {', '.join(right.operations)} | {right.why} |"
    yield ""
    if not needs_bucket(role):
        yield "S3: nothing."
        return
    if actions := actions_of(role):
        yield f"S3: {', '.join(f'`{action}`' for action in actions)}."
    if role.tables:
        told = ", ".join(f"`{action}`" for action in sorted(TABLE_ACTIONS))
        yield f"S3, only if its tables are there: {told}, and `s3:ListBucket`, under their own prefix."


def _subject(right: KafkaRight) -> str:
    if right.resource is Resource.CLUSTER:
        return "the cluster"
    kind = right.resource.value.removeprefix("--")
    if right.name == CHOSEN_TOPICS:
        return "topics that you name"
    if right.name == "*":
        return f"every {kind}"
    return f"{kind}s `{right.name}…`" if right.is_prefix else f"{kind} `{right.name}`"
