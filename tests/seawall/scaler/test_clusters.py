"""Whose settings the clusters of a scaler are made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from seawall.scaler.run import config_of


def test_another_cluster_is_what_its_file_says_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEAWALL_KAFKA__BOOTSTRAP names the scaler's own cluster, and no other."""
    file = tmp_path / "west.toml"
    file.write_text('[kafka]\nbootstrap = "west:9092"\n')
    monkeypatch.setenv("SEAWALL_KAFKA__BOOTSTRAP", "east:9092")

    assert config_of(file)["bootstrap.servers"] == "west:9092"
