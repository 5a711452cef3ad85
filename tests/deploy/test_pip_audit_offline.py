"""deploy/pip-audit-offline: its answers are the database's, for each version that is pinned."""

from __future__ import annotations

import json
import subprocess
import threading
import urllib.request
from pathlib import Path

import pytest

from tests.deploy.test_image import module_at
from tests.deploy.test_schedules import DEPLOY

ADVISORY = """
id: PYSEC-2026-1
details: Reads what it should not.
affected:
- package: {name: Some.Package, ecosystem: PyPI}
  ranges:
  - type: GIT
    repo: https://example.org/x
    events: [{introduced: "0"}, {fixed: abcdef}]
  - type: ECOSYSTEM
    events: [{introduced: "2.9"}, {fixed: "2.10"}, {introduced: "0"}, {fixed: "1.5"}]
  versions: [3.0.post1]
- package: {name: another, ecosystem: PyPI}
  ranges:
  - {type: ECOSYSTEM, events: [{introduced: "0"}, {last_affected: "4"}]}
published: 2026-01-02T03:04:05Z
"""
GIT = ["git", "-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "init.defaultBranch=main"]
offline = module_at(DEPLOY / "pip-audit-offline")


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("advisories")
    (folder / "vulns" / "some-package").mkdir(parents=True)
    (folder / "vulns" / ".next-id").write_text("PYSEC-2026-2\n")
    (folder / "vulns" / "some-package" / "PYSEC-2026-1.yaml").write_text(ADVISORY)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*GIT, "-C", str(folder), *words], check=True)
    return folder


@pytest.mark.parametrize(
    ("name", "version", "concerned"),
    [
        ("some-package", "1.4.9", True),
        ("some-package", "1.5", False),
        ("some-package", "2.9.1", True),
        ("some-package", "2.10", False),  # not below 2.9, as its letters would have it
        ("some-package", "3.0.post1", True),
        ("another", "4", True),
        ("another", "4.1", False),
        ("a-third", "1", False),
    ],
)
def test_the_answer_is_the_databases(clone: Path, name: str, version: str, concerned: bool) -> None:
    """A version is told of when it is listed or lies in a range, whatever the order of its events."""
    server, asked = offline.served(offline.advisories(clone))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    question = json.dumps({"package": {"name": name, "ecosystem": "PyPI"}, "version": version}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/v1/query", data=question) as answer:
        told = json.load(answer)
    server.shutdown()
    server.server_close()

    assert [each["id"] for each in told.get("vulns", ())] == (["PYSEC-2026-1"] if concerned else [])
    assert asked == {f"{name}=={version}"}


def test_every_pinned_version_has_its_round() -> None:
    """What is pinned twice, for two Pythons, is asked for twice, never both in one round."""
    pins = [("a", "1"), ("a", "2"), ("b", "1"), ("a", "3")]

    rounds = list(offline.rounds(pins))

    assert [pin for each in rounds for pin in each.items()] == [
        ("a", "1"),
        ("b", "1"),
        ("a", "2"),
        ("a", "3"),
    ]
