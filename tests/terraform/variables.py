"""What examples are given in tests."""

from __future__ import annotations

import json

VALUES: dict[str, dict[str, object]] = {
    "single-account": {
        "region": "us-east-1",
        "bucket": "tides",
        "packages": "packages",
        "submit_parameters": "--archives s3://packages/seawall/environment.tar.gz#environment",
        "release": "emr-test",
        "operator_arns": ["arn:aws:iam::123456789012:role/platform"],
    },
    "cross-account": {
        "region": "us-east-1",
        "bucket": "tides",
        "administrator_arns": ["arn:aws:iam::123456789012:role/archive"],
        "operator_arns": ["arn:aws:iam::123456789012:role/platform"],
    },
}


def as_json(example: str) -> str:
    """The text of terraform.tfvars.json."""
    return json.dumps(VALUES[example])
