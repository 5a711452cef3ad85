"""Calls the console script inside this process, as a shell would see it."""

from __future__ import annotations

import contextlib
import io
import os
from dataclasses import dataclass
from unittest import mock

from seawall.cli import main
from seawall.local.broker import LocalCluster
from seawall.local.s3 import S3Address


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    status: int
    stdout: str
    stderr: str


def environ_of(cluster: LocalCluster, at: S3Address, prefix: str) -> dict[str, str]:
    """Settings for both servers, as a user gives them."""
    return {
        "SEAWALL_KAFKA__BOOTSTRAP": cluster.bootstrap,
        "SEAWALL_S3__BUCKET": at.bucket,
        "SEAWALL_S3__PREFIX": prefix,
        "SEAWALL_S3__ENDPOINT_URL": at.endpoint_url,
        "SEAWALL_S3__REGION": at.region,
        "AWS_ACCESS_KEY_ID": at.access_key_id,
        "AWS_SECRET_ACCESS_KEY": at.secret_access_key,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def call(*arguments: str, environ: dict[str, str] | None = None) -> Called:
    """Run `seawall ARGUMENTS...` with no SEAWALL_ variables but these."""
    around = {name: value for name, value in os.environ.items() if not name.startswith("SEAWALL_")}
    stdout, stderr = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, {**around, **(environ or {})}, clear=True),
        mock.patch("sys.argv", ["seawall", *arguments]),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            main()
            status: object = 0
        except SystemExit as ended:
            status = ended.code
    assert isinstance(status, int)
    return Called(status=status, stdout=stdout.getvalue(), stderr=stderr.getvalue())
