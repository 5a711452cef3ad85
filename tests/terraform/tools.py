"""Terraform as the tests call it: found on this machine with its AWS provider, over moto in place of AWS.

Owns the looking and the working copies. Where terraform or the provider is absent, the reason is said.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from moto.server import ThreadedMotoServer

FOLDER = Path(__file__).parents[2] / "terraform"
MODULES = tuple(sorted(each.name for each in (FOLDER / "modules").iterdir()))
EXAMPLES = tuple(sorted(each.name for each in (FOLDER / "examples").iterdir()))
PLUGINS_VARIABLE = "SEAWALL_TEST_TERRAFORM_PLUGINS"
PROVIDER = Path("registry.terraform.io/hashicorp/aws")
SERVICES = (
    *("cloudwatch", "emrserverless", "iam", "kms", "logs"),
    *("s3", "scheduler", "secretsmanager", "sts"),
)
DEADLINE_S = 600.0


class NotToBeHad(Exception):
    """Why there is no terraform on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    status: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Terraform:
    program: str
    plugins: Path

    def run(self, folder: Path, *arguments: str) -> Ran:
        done = subprocess.run(
            [self.program, *arguments],
            cwd=folder,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith(("TF_", "AWS_"))},
                "TF_CLI_CONFIG_FILE": os.devnull,
                "TF_IN_AUTOMATION": "1",
                "CHECKPOINT_DISABLE": "1",
                "AWS_EC2_METADATA_DISABLED": "true",
            },
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return Ran(status=done.returncode, text=done.stdout + done.stderr)

    def init(self, folder: Path) -> None:
        ran = self.run(folder, "init", f"-plugin-dir={self.plugins}", "-no-color", "-input=false")
        assert ran.status == 0, ran.text


def found() -> Terraform:
    """Raises NotToBeHad."""
    program = shutil.which("terraform")
    if program is None:
        raise NotToBeHad("there is no `terraform` on this machine")
    for folder in _plugin_folders():
        if (folder / PROVIDER).is_dir():
            return Terraform(program=program, plugins=folder)
    raise NotToBeHad(f"no plugin folder has the AWS provider: name one in {PLUGINS_VARIABLE}")


def _plugin_folders() -> Iterator[Path]:
    """The one that is named, Terraform's own, and what a machine's owner may have put beside them."""
    if named := os.environ.get(PLUGINS_VARIABLE):
        yield Path(named)
    yield Path.home() / ".terraform.d" / "plugins"
    for above in ("/usr/share/terraform", "/usr/local/share/terraform", "/opt"):
        yield from sorted(Path(above).glob("*")) if Path(above).is_dir() else ()


def copied(into: Path, example: str) -> Path:
    """A working copy of everything; the folder of the example in it."""
    whole = into / "terraform"
    shutil.copytree(FOLDER, whole, ignore=shutil.ignore_patterns(".terraform*", "*.tfstate*"))
    return whole / "examples" / example


def at_moto(folder: Path, url: str) -> None:
    """Sends every provider of an example to moto, by an override file beside it."""
    main = (folder / "main.tf").read_text()
    aliases = re.findall(r'^provider "aws" \{\n(?:  alias\s+= "(\w+)"\n)?', main, re.MULTILINE)
    endpoints = "\n".join(f'    {name} = "{url}"' for name in SERVICES)
    blocks = [
        "\n".join(
            [
                'provider "aws" {',
                *([f'  alias = "{alias}"'] if alias else []),
                '  access_key                  = "anyone"',
                '  secret_key                  = "anything"',
                "  s3_use_path_style           = true",
                "  skip_credentials_validation = true",
                "  skip_metadata_api_check     = true",
                "  skip_region_validation      = true",
                "  endpoints {",
                endpoints,
                "  }",
                "}",
            ]
        )
        for alias in aliases
    ]
    (folder / "moto_override.tf").write_text("\n".join(blocks) + "\n")


@contextmanager
def moto() -> Iterator[str]:
    """A server that answers as AWS does; its address."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
