"""The soak in its short form, without Spark; an hour of the whole is `python -m tests.soak`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.bounds import Wanted
from tests.soak.shown import table
from tests.soak.soak import soak
from tests.soak.world import Kept


@pytest.mark.long  # a minute or more: three brokers, three agents, serve
@pytest.mark.jvm
@pytest.mark.timeout(1800)
def test_under_a_steady_load_nothing_grows_and_nothing_is_lost(tmp_path: Path) -> None:
    """What agents and serve hold does not rise; every scrub is clean, all that was sent is read back by the
    endpoint in order, from its beginning too, and nobody is ever far behind. Nothing expires in it: where a
    machine is slow enough, a retention of seconds overtakes any copy."""
    found = soak(
        tmp_path,
        Wanted(
            seconds=60.0,
            records_per_s=90.0,
            kept=Kept(segment_bytes=64 * 1024, local_s=1800, total_s=3600),
            sample_every_s=1.0,
            scrub_every_s=15.0,
            has_audit=False,
        ),
    )

    assert found.wrong == [], table(found)
    assert found.records > 1_000
    assert len(found.scrubs) >= 2
