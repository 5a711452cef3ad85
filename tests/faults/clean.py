"""How every test that writes a tier ends: its topic is in the bucket as the metadata says, and sound.

Give it the cluster, the bucket, the topic and the prefix of its keys, once whoever writes has ended and what
the test damaged on purpose is undone.
"""

from __future__ import annotations

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from seawall.local.s3 import S3Address
from tests.faults.scrub import scrub
from tests.faults.test_whole_system import direct_store, replayed
from tiering.store.keys import KeyLayout


def assert_clean(
    cluster: LocalCluster,
    bucket: LocalBucket | S3Address,
    topic: str,
    *,
    prefix: str,
    may_have_gaps: bool = False,
    may_be_empty: bool = False,
) -> None:
    """Scrub each topic that ever had this name. Nothing to look at is not clean, unless that may be so."""
    table, looked_at = replayed(cluster), 0
    views = [view for log in table.logs() if (view := table.view(log)) is not None]
    for topic_id in {view.log.topic_id for view in views if view.record and view.record.topic == topic}:
        found = scrub(
            table, direct_store(bucket), KeyLayout(prefix), topic_id=topic_id, may_have_gaps=may_have_gaps
        )
        assert not found.problems, found
        looked_at += found.segments
    assert looked_at or may_be_empty, f"nothing of {topic} is in the tier: nothing was looked at"
