"""The soak in its short form, without Spark; an hour of the whole is `python -m tests.soak`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.soak import Wanted, soak


@pytest.mark.long  # a minute or more: three brokers, three agents, serve
@pytest.mark.jvm
@pytest.mark.timeout(1800)
def test_under_a_steady_load_nothing_grows_and_nothing_is_lost(tmp_path: Path) -> None:
    """Agents and serve hold what they held in the middle; every scrub is clean, all that was sent is read
    back by the endpoint in order, from its beginning too, and nobody was ever far behind."""
    found = soak(
        tmp_path,
        Wanted(
            seconds=40.0,
            records_per_s=90.0,
            segment_bytes=64 * 1024,
            sample_every_s=1.0,
            scrub_every_s=15.0,
            has_audit=False,
        ),
    )

    assert found.wrong == [], found.report()
    assert found.records > 1_000
    assert found.scrubs >= 2
