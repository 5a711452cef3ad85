"""Permissions: the least for each role, held against the code that makes the calls."""

from __future__ import annotations

import ast
import inspect
import subprocess
from pathlib import Path

import pytest

from seawall.backup.bucket import s3 as check_s3
from seawall.doctor import s3 as doctor_s3
from seawall.init.permissions import acls, iam, page
from seawall.init.permissions.roles import (
    BUCKET_ACTIONS,
    CALLS,
    CHECK_CALLS,
    CHOSEN_TOPICS,
    DOCTOR_CALLS,
    METHODS,
    NEVER,
    ROLES,
    TABLE_ACTIONS,
    KafkaRight,
    Resource,
    Role,
    actions_of,
)
from tiering.store import s3 as store_s3

BY_NAME = {role.name: role for role in ROLES}
REMOVES = "s3:DeleteObject"


def called(node: ast.AST) -> set[str]:
    """Names of what is called as `….client.NAME(` or `….self.NAME(` below the node."""
    return {
        each.func.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
    }


def store_methods() -> dict[str, set[str]]:
    """Of each of S3Store's methods: the boto3 calls that it makes, by way of its own helpers too."""
    tree = ast.parse(inspect.getsource(store_s3))
    [store] = [each for each in tree.body if isinstance(each, ast.ClassDef) and each.name == "S3Store"]
    direct = {each.name: called(each) for each in store.body if isinstance(each, ast.FunctionDef)}
    whole: dict[str, set[str]] = {}

    def reached(name: str, above: frozenset[str] = frozenset()) -> set[str]:
        found = direct[name] & set(CALLS)
        for other in (direct[name] & set(direct)) - above - {name}:
            found |= reached(other, above | {name})
        return found

    for name in direct:
        whole[name] = reached(name)
    return whole


def boto3_calls(module: object) -> set[str]:
    """Calls on a boto3 client in a module: `self._client.NAME(` or `client.NAME(`."""
    tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
    found = set()
    for each in ast.walk(tree):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            owner = each.func.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name in ("_client", "client"):
                found.add(each.func.attr)
    return found


def test_every_call_to_s3_has_its_actions() -> None:
    """A call that is new in the store, or in the doctor, has to be given its rights before this passes."""
    assert boto3_calls(store_s3) | boto3_calls(doctor_s3) | boto3_calls(check_s3) == set(CALLS)
    assert boto3_calls(check_s3) == set(CHECK_CALLS)
    assert boto3_calls(doctor_s3) == set(DOCTOR_CALLS)


def test_every_method_of_the_store_is_the_calls_that_it_makes() -> None:
    """METHODS is what tiering/store/s3.py says, helpers included, no call more and none less."""
    public = {name: calls for name, calls in store_methods().items() if name in METHODS}

    assert public == {name: set(calls) for name, calls in METHODS.items()}
    assert {name for name, calls in store_methods().items() if calls and not name.startswith("_")} == set(
        METHODS
    )


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_role_has_the_actions_of_its_calls_and_no_others(role: Role) -> None:
    """What the IAM policy allows is what the methods take, and ListBucket for a 404."""
    calls = {call for method in role.methods for call in METHODS[method]}
    calls |= set(DOCTOR_CALLS) if role.doctor else set()
    calls |= set(CHECK_CALLS) if role.check else set()
    wanted = {action for call in calls for action in CALLS[call]} | (
        {"s3:ListBucket"} if "head_object" in calls else set()
    )
    wanted |= {*TABLE_ACTIONS, "s3:ListBucket"} if role.tables else set()

    document = iam.policy(role, bucket="tides", prefix="seawall/c/", region=None)
    allowed = {
        action
        for statement in document["Statement"]
        if statement["Effect"] == "Allow"
        for action in statement["Action"]
    }
    assert allowed == wanted


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_no_role_may_delete_a_version_or_change_a_bucket(role: Role) -> None:
    """Neither allowed nor left open: it is denied, for the bucket and all its keys."""
    statements = iam.policy(role, bucket="tides", prefix="seawall/c/", region=None)["Statement"]

    assert set(actions_of(role)).isdisjoint(NEVER)
    assert "s3:DeleteObjectVersion" in NEVER
    assert not any("*" in action for action in actions_of(role))
    [denied] = [each for each in statements if each["Effect"] == "Deny"]
    assert set(denied["Action"]) == set(NEVER)
    assert denied["Resource"] == ["arn:aws:s3:::tides", "arn:aws:s3:::tides/*"]


def test_who_only_looks_can_change_nothing() -> None:
    """The reader has neither a right to write in Kafka nor one in S3; the observer has no bucket at all."""
    reader = BY_NAME["reader"]
    may = {operation for right in reader.kafka for operation in right.operations}

    assert may == {"Describe", "DescribeConfigs", "Read"}
    assert not any(action.startswith(("s3:Put", "s3:Delete", "s3:Abort")) for action in actions_of(reader))
    assert not iam.needs_bucket(BY_NAME["agent-observe"])
    writes = [right for right in BY_NAME["agent-observe"].kafka if "Write" in right.operations]
    assert [right.name for right in writes] == ["__seawall_audit"]


def test_deleting_records_is_one_roles_alone_and_of_topics_that_are_named() -> None:
    """Delete is in no other role, and there for no topic before somebody names it; nobody alters a thing."""
    deleting = [(role.name, right) for role in ROLES for right in role.kafka if "Delete" in right.operations]

    [(name, right)] = deleting
    assert (name, right.name, right.operations) == ("agent-trim", CHOSEN_TOPICS, ("Delete",))
    every = {operation for role in ROLES for each in role.kafka for operation in each.operations}
    assert every.isdisjoint({"All", "Alter", "AlterConfigs", "ClusterAction"})


def test_rights_on_objects_stay_below_the_clusters_own_prefix() -> None:
    """Another cluster's keys in the same bucket are out of reach, as is everything beside them."""
    for role in ROLES:
        for statement in iam.policy(role, bucket="tides", prefix="seawall/c/", region=None)["Statement"]:
            if statement["Effect"] == "Allow" and not set(statement["Action"]) <= BUCKET_ACTIONS:
                assert statement["Resource"] in (
                    "arn:aws:s3:::tides/seawall/c/*",
                    "arn:aws:s3:::tides/seawall-tables/*",
                )


@pytest.mark.parametrize(
    ("region", "partition"),
    [(None, "aws"), ("eu-central-1", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")],
)
def test_a_regions_names_are_those_of_its_partition(region: str | None, partition: str) -> None:
    """ARNs in China and GovCloud begin otherwise."""
    statements = iam.policy(BY_NAME["reader"], bucket="tides", prefix="p/", region=region)["Statement"]

    assert statements[0]["Resource"] == f"arn:{partition}:s3:::tides"


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_script_hands_kafkas_tool_each_right_of_the_role(role: Role, tmp_path: Path) -> None:
    """Run by a shell, the tool only noting its arguments: a call for each right, the topics as named."""
    noted = tmp_path / "noted"
    tool = tmp_path / "kafka acls.sh"  # a name with a space, as paths have
    tool.write_text(f'#!/bin/sh\nfor each in "$@"; do printf "%s|" "$each" >>{noted}; done; echo >>{noted}\n')
    tool.chmod(0o755)
    script = tmp_path / "script.sh"
    script.write_text(acls.script(role, bootstrap="kafka-1:9092", where="cluster x"))

    subprocess.run(
        ["/bin/sh", str(script)],
        check=True,
        env={"PATH": "/bin:/usr/bin", "KAFKA_ACLS": str(tool), "TOPICS": "orders pay.ments"},
    )

    calls = [line.strip("|").split("|") for line in noted.read_text().splitlines()]
    wanted = [argument for right in role.kafka for argument in expected(right)]
    assert [call[5:] for call in calls] == wanted
    head = ["--bootstrap-server", "kafka-1:9092", "--add", "--allow-principal", f"User:seawall-{role.name}"]
    assert all(call[:5] == head for call in calls)


def expected(right: KafkaRight) -> list[list[str]]:
    names = ["orders", "pay.ments"] if right.name == CHOSEN_TOPICS else [right.name]
    operations = [word for operation in right.operations for word in ("--operation", operation)]
    tail = ["--resource-pattern-type", "prefixed"] if right.is_prefix else []
    if right.resource is Resource.CLUSTER:
        return [[*operations, "--cluster"]]
    return [[*operations, right.resource.value, name, *tail] for name in names]


def test_the_page_names_every_role_and_each_of_its_rights() -> None:
    """What people read is what the files have."""
    text = page.page(bucket="tides", prefix="seawall/c/", where="cluster x")

    for role in ROLES:
        section = text.partition(f"## {role.name}\n")[2].partition("\n## ")[0]
        assert all(right.why in section for right in role.kafka)
        assert all(f"`{action}`" in section for action in actions_of(role))
