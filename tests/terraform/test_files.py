"""The files themselves: in Terraform's own form, valid, and documented by what they say of themselves."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.terraform.inputs import PAGE, page, said
from tests.terraform.tools import EXAMPLES, FOLDER, MODULES, NotToBeHad, Terraform, copied, found


@pytest.fixture(scope="module")
def terraform() -> Terraform:
    try:
        return found()
    except NotToBeHad as reason:
        pytest.skip(str(reason))


def test_they_are_formatted(terraform: Terraform) -> None:
    """As `terraform fmt` writes them."""
    ran = terraform.run(FOLDER, "fmt", "-check", "-recursive", "-diff")

    assert ran.status == 0, ran.text


@pytest.mark.slow  # Terraform asks its provider
@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_are_valid(terraform: Terraform, example: str, tmp_path: Path) -> None:
    """With every module that they use, by the provider's own schema."""
    folder = copied(tmp_path, example)
    terraform.init(folder)

    ran = terraform.run(folder, "validate", "-no-color")

    assert ran.status == 0, ran.text


@pytest.mark.parametrize(
    "name", [f"modules/{each}" for each in MODULES] + [f"examples/{each}" for each in EXAMPLES]
)
def test_every_input_and_output_says_what_it_is(name: str) -> None:
    """A description each, a sentence with its stop; an input has a type."""
    inputs, outputs = said(FOLDER / name)

    assert inputs
    assert outputs
    for each in [*inputs, *outputs]:
        assert each.description.endswith("."), (name, each.name)
    assert all(each.type for each in inputs)


def test_the_page_says_what_the_code_says() -> None:
    """Made anew by `python -m tests.terraform.inputs`."""
    assert PAGE.read_text(encoding="utf-8") == page(PAGE.read_text(encoding="utf-8"))


@pytest.mark.long
def test_checkov_finds_nothing() -> None:
    """But for what stands beside a resource with its reason."""
    checkov = shutil.which("checkov")
    if checkov is None:
        pytest.skip(
            "there is no `checkov` on this machine: pip install checkov, in an environment of its own"
        )
    arguments = ["-d", str(FOLDER), "--framework", "terraform", "--skip-download", "-o", "json", "--quiet"]
    ran = subprocess.run([checkov, *arguments], capture_output=True, text=True, timeout=500, check=False)

    told = json.loads(ran.stdout)
    assert told["summary"]["passed"] > 200
    assert [(each["check_id"], each["resource"]) for each in told["results"]["failed_checks"]] == []
    reasons = [each["check_result"]["suppress_comment"] for each in told["results"].get("skipped_checks", [])]
    assert all(len(each) > 20 for each in reasons)
