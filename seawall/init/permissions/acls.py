"""A role's rights in Kafka as a shell script around Kafka's own kafka-acls, to be read before it is run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from seawall.init.permissions.roles import CHOSEN_TOPICS, KafkaRight, Resource, Role

_HEAD = """\
#!/bin/sh
# {name}: {does}
# For {where}. Written by `seawall init`; nothing was changed. Read it, then run it as who may alter ACLs.
# PRINCIPAL is who the ACLs are for, KAFKA_ACLS the tool, COMMAND_CONFIG a file for the tool's own login.
set -eu
: "${{PRINCIPAL:=User:seawall-{name}}}"
: "${{KAFKA_ACLS:=kafka-acls.sh}}"
: "${{BOOTSTRAP:={bootstrap}}}"

allow() {{
    "$KAFKA_ACLS" --bootstrap-server "$BOOTSTRAP" ${{COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"}} \\
        --add --allow-principal "$PRINCIPAL" "$@"
}}
"""
_CHOSEN = """\
# {why}. Name the topics: TOPICS='orders payments'. None is named here.
for topic in ${{TOPICS:-}}; do
    allow {operations} --topic "$topic"
done"""


def script(role: Role, *, bootstrap: str, where: str) -> str:
    lines = [_HEAD.format(name=role.name, does=role.does, where=where, bootstrap=bootstrap)]
    lines += [_line(right) for right in role.kafka]
    return "\n".join(lines) + "\n"


def _line(right: KafkaRight) -> str:
    operations = " ".join(f"--operation {operation}" for operation in right.operations)
    if right.name == CHOSEN_TOPICS:
        return _CHOSEN.format(why=right.why, operations=operations)
    return f"allow {' '.join(arguments(right))}   # {right.why}"


def arguments(right: KafkaRight) -> Iterator[str]:
    """Of kafka-acls, quoted for a shell."""
    for operation in right.operations:
        yield f"--operation {operation}"
    yield right.resource.value
    if right.resource is not Resource.CLUSTER:
        yield shlex.quote(right.name)
    if right.is_prefix:
        yield "--resource-pattern-type prefixed"
