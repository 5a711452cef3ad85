"""docs/SCALER.md has what a ScaledObject may say."""

from __future__ import annotations

import re
from pathlib import Path

from workers.scaler.options import KEYS

PAGE = Path(__file__).parents[3] / "docs" / "SCALER.md"


def test_every_key_is_on_the_page_and_no_other() -> None:
    """In the first column of the table of keys."""
    section = PAGE.read_text(encoding="utf-8").split("## scalerMetadata")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]

    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(KEYS)
