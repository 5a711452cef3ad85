"""The examples on moto, which answers as AWS: planned, applied, without a difference then, destroyed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.terraform.tools import EXAMPLES, NotToBeHad, Terraform, at_moto, copied, found, moto
from tests.terraform.variables import as_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    name: str
    folder: Path
    url: str
    terraform: Terraform

    def run(self, *arguments: str, status: int = 0) -> str:
        ran = self.terraform.run(self.folder, *arguments, "-no-color")
        assert ran.status == status, ran.text
        return ran.text

    def client(self, service: str) -> Any:
        return boto3.client(
            service,  # type: ignore[call-overload]  # by a name that is not written here
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="anyone",
            aws_secret_access_key="anything",
        )


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Example]:
    try:
        terraform = found()
    except NotToBeHad as reason:
        pytest.skip(str(reason))
    with moto() as url:
        folder = copied(tmp_path, request.param)
        at_moto(folder, url)
        (folder / "terraform.tfvars.json").write_text(as_json(request.param))
        terraform.init(folder)
        yield Example(name=request.param, folder=folder, url=url, terraform=terraform)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_it_is_applied_once_and_goes_whole(example: Example) -> None:
    """A plan, its apply, an empty plan after it; the bucket is what Seawall asks for; destroyed, nothing is
    left but keys that wait for their deletion."""
    example.run("plan", "-input=false", "-out=plan")
    example.run("apply", "-input=false", "plan")
    again = example.run("plan", "-input=false", "-detailed-exitcode")
    assert "No changes." in again

    s3 = example.client("s3")
    assert s3.get_bucket_versioning(Bucket="tides")["Status"] == "Enabled"
    lock = s3.get_object_lock_configuration(Bucket="tides")["ObjectLockConfiguration"]
    assert lock["ObjectLockEnabled"] == "Enabled"
    [expiring, _] = s3.get_bucket_lifecycle_configuration(Bucket="tides")["Rules"]
    assert expiring["NoncurrentVersionExpiration"]["NoncurrentDays"] >= 30
    assert "Days" not in expiring["Expiration"], "what lives is never expired"
    denied = policy_of(s3.get_bucket_policy(Bucket="tides")["Policy"], "Deny")
    assert {"s3:DeleteObjectVersion", "s3:BypassGovernanceRetention"} <= denied
    if example.name == "single-account":
        looks_at_the_audit(example)
    outputs = json.loads(example.run("output", "-json"))
    assert outputs["settings"]["value"]["bucket"] == "tides"

    # No bucket goes that is not empty, and moto writes access logs: they stop, and are removed by hand.
    example.run(
        *["destroy", "-input=false", "-auto-approve", "-target=module.bucket.aws_s3_bucket_logging.this"]
    )
    for each in s3.list_object_versions(Bucket="tides-logs").get("Versions", []):
        s3.delete_object(Bucket="tides-logs", Key=each["Key"], VersionId=each["VersionId"])
    example.run("destroy", "-input=false", "-auto-approve")
    assert example.run("state", "list") == ""
    assert s3.list_buckets()["Buckets"] == []


def looks_at_the_audit(example: Example) -> None:
    """A schedule for each step, started as the job's role; an alarm for a day without a run."""
    scheduler, alarms = example.client("scheduler"), example.client("cloudwatch")
    names = {each["Name"] for each in scheduler.list_schedules()["Schedules"]}
    assert names == {"seawall-ingest", "seawall-audit", "seawall-maintain"}
    told = scheduler.get_schedule(Name="seawall-audit", GroupName="seawall")
    started = json.loads(told["Target"]["Input"])
    assert started["JobDriver"]["SparkSubmit"]["EntryPointArguments"] == ["audit", "run"]
    assert started["ExecutionRoleArn"].endswith("role/seawall-audit-job")
    [alarm] = alarms.describe_alarms()["MetricAlarms"]
    assert (alarm["TreatMissingData"], alarm["EvaluationPeriods"]) == ("breaching", 26)


def policy_of(document: str, effect: str) -> set[str]:
    """All actions that a policy allows, or denies."""
    found: set[str] = set()
    for each in json.loads(document)["Statement"]:
        if each["Effect"] == effect:
            found |= {each["Action"]} if isinstance(each["Action"], str) else set(each["Action"])
    return found
