"""deploy/clean-root: the README's first command in a Debian that has nothing of ours."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.deploy.test_image import module_at, said_in_clean_roots
from tests.deploy.test_schedules import DEPLOY

PROGRAM = DEPLOY / "clean-root" / "try"


def test_the_readmes_commands_are_the_ones_that_are_tried() -> None:
    """What the clean root is given are README.md's first commands, and what it says must be there."""
    readme = (DEPLOY.parent / "README.md").read_text()
    first = readme.partition("```\n")[2].partition("```")[0]
    stated = re.search(r"On Linux with (.*)[:.]\n", readme)
    tried = module_at(PROGRAM)

    assert [line.partition("  ")[0] for line in first.splitlines()] == tried.README
    assert stated is not None
    assert stated[1] == "Python 3.10 or newer (with venv), make and git"
    assert set(tried.REQUIRED) == {"python3", "python3-venv", "make", "git"}


@pytest.mark.long  # a Debian root, every package and every jar into it, and the demo
@pytest.mark.timeout(5400)
@pytest.mark.skipif(shutil.which("debootstrap") is None, reason="there is no debootstrap here")
@pytest.mark.skipif(os.geteuid() != 0, reason="a root that is entered by chroot takes root")
def test_the_demo_works_in_a_clean_root(tmp_path: Path) -> None:
    """`make demo` as written, without Java or anything of ours beforehand, proves all that it claims."""
    said = said_in_clean_roots(PROGRAM, tmp_path / "clean", "make demo")

    assert "✔ proved" in said
    assert "make demo: " in said
