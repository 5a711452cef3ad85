"""The kit over each store that tests have: in memory, and over S3's protocol on two real servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from seawall.local.bucket import LocalBucket
from tests.cluster.versitygw import VersityGateway
from tests.tiering.scrub.kit import Kit
from tests.tiering.scrub.trouble import Trouble
from tests.tiering.store.memory import Bucket, MemoryStore
from tiering.store.patient import PatientStore, patient
from tiering.store.retry import RetryPolicy
from tiering.store.s3 import S3Store, S3StoreSettings

POLICY = RetryPolicy(attempts_max=2, attempt_s=10, overall_s=20, soon_s=0.01, later_s=0.01)
PATIENT_S = 20.0
HASTY_S = 0.5  # for those who hang


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A bucket on a real server: a kit that fills it directly, and a way to it that can be troubled."""

    kit: Kit
    bucket: str
    client: Any  # boto3's own, for what Seawall cannot do
    trouble: Trouble
    through: PatientStore
    hasty: PatientStore  # the same way, for those who would hang


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    """In memory."""
    kept = Bucket()
    store = patient(MemoryStore(kept), policy=POLICY, sleep=lambda _: None)
    return Kit(store=store, folder=tmp_path, bucket=kept)


@pytest.fixture(params=["moto", "versitygw"])
def wire(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Wire]:
    """Over S3's protocol."""
    if request.param == "moto":
        local: LocalBucket = request.getfixturevalue("bucket")
        at = local.address
        name, endpoint_url = at.bucket, at.endpoint_url
        session = boto3.Session(
            aws_access_key_id=at.access_key_id,
            aws_secret_access_key=at.secret_access_key,
            region_name=at.region,
        )
    else:
        gateway: VersityGateway = request.getfixturevalue("versitygw")
        name, endpoint_url, session = gateway.new_bucket(), gateway.endpoint_url, gateway.session()

    def store(url: str, timeout_s: float) -> PatientStore:
        settings = S3StoreSettings(
            bucket=name,
            endpoint_url=url,
            region="us-east-1",
            connect_timeout_s=timeout_s,
            read_timeout_s=timeout_s,
        )
        return patient(S3Store(settings, session), policy=POLICY)

    with Trouble(endpoint_url) as trouble:
        yield Wire(
            kit=Kit(store=store(endpoint_url, PATIENT_S), folder=tmp_path),
            bucket=name,
            client=session.client("s3", endpoint_url=endpoint_url),
            trouble=trouble,
            through=store(trouble.endpoint_url, PATIENT_S),
            hasty=store(trouble.endpoint_url, HASTY_S),
        )
