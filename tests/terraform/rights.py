"""The policies of the roles module as Terraform would make them: planned, of a bucket that there is not."""

from __future__ import annotations

import json
from pathlib import Path

from tests.terraform.tools import FOLDER, Terraform

BUCKET, PREFIX = "tides", "seawall"
KEY = "arn:aws:kms:us-east-1:123456789012:key/11111111-2222-3333-4444-555555555555"
_ROOT = """
terraform {{
  required_providers {{
    aws = {{ source = "hashicorp/aws" }}
  }}
}}

provider "aws" {{
  region                      = "us-east-1"
  access_key                  = "anyone"
  secret_key                  = "anything"
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  skip_requesting_account_id  = true
}}

module "roles" {{
  source     = "{module}"
  bucket_arn = "arn:aws:s3:::{bucket}"
  prefix     = "{prefix}"
  key_arn    = "{key}"
}}
"""


def policies(terraform: Terraform, folder: Path) -> dict[str, str]:
    """The policy document of each thing that is done, as JSON."""
    module = (FOLDER / "modules" / "roles").as_posix()
    (folder / "main.tf").write_text(_ROOT.format(module=module, bucket=BUCKET, prefix=PREFIX, key=KEY))
    terraform.init(folder)
    planned = terraform.run(folder, "plan", "-input=false", "-no-color", "-out=plan")
    assert planned.status == 0, planned.text
    shown = terraform.run(folder, "show", "-json", "plan")
    assert shown.status == 0, shown.text
    root = json.loads(shown.text)["planned_values"]["root_module"]
    return {
        each["index"]: each["values"]["policy"]
        for module_ in root["child_modules"]
        for each in module_["resources"]
        if each["type"] == "aws_iam_policy"
    }
