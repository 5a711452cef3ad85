"""Where the cache folder is."""

from __future__ import annotations

from pathlib import Path

import pytest

from seawall.jvm.cache import cache_dir

HOME = Path.home() / ".cache" / "seawall"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"SEAWALL_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, Path("/a")),
        ({"XDG_CACHE_HOME": "/b"}, Path("/b/seawall")),
        ({"XDG_CACHE_HOME": "relative"}, HOME),
        ({"SEAWALL_CACHE_DIR": "", "XDG_CACHE_HOME": ""}, HOME),
        ({}, HOME),
        ({"SEAWALL_CACHE_DIR": "here"}, Path.cwd() / "here"),
        ({"SEAWALL_CACHE_DIR": "~/jars"}, Path.home() / "jars"),
    ],
)
def test_own_variable_then_xdg_then_home(environ: dict[str, str], expected: Path) -> None:
    """SEAWALL_CACHE_DIR decides, else XDG's folder if absolute, else ~/.cache; the answer is absolute."""
    assert cache_dir(environ) == expected
