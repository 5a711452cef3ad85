"""A restore to the tier on a real S3 server: whole with one request an object, refused whole by parts.

versitygw takes a delete marker for an object in the finish of a multipart upload, so that a copy by parts is
refused there: which shows, on a real server, what a refusal in the middle leaves behind. Nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest

from backup.errors import MarkerTakenForObject
from tests.backup.world import World
from tests.cluster.versitygw import VersityGateway
from tests.tiering.segments.strategies import LOG
from tests.tiering.store.memory import MemoryStore
from tiering.store.errors import AlreadyExists
from tiering.store.patient import patient
from tiering.store.s3 import S3Store, S3StoreSettings


def on_server(gateway: VersityGateway, *, in_one: bool) -> World:
    """Four copies in a bucket of their own, of which three are expired."""
    settings = S3StoreSettings(
        bucket=gateway.new_bucket(),
        endpoint_url=gateway.endpoint_url,
        region="us-east-1",
        copies_where_absent=in_one,
    )
    store = S3Store(settings, gateway.session())
    world = World()
    world.store, world.objects = cast(MemoryStore, store), patient(store)
    for place in range(4):
        world.copy(10 * place, 10 * place + 10)
    world.expire_below(30)
    return world


def live(world: World) -> dict[str, int]:
    return {each.key: each.size_bytes for each in world.objects.list_keys("")}


def test_every_object_is_live_again_as_it_is_on_record(versitygw: VersityGateway) -> None:
    """Size, checksum and version of each are what the new generation's records say; nothing is under way."""
    world = on_server(versitygw, in_one=True)
    before = {each.version_id for each in world.objects.list_versions("")}

    done = world.apply(world.plan(), workers=4)

    assert (done.log_start, done.objects_put_back) == (0, 9)
    for each in world.view(LOG).segments():
        record = world.segment(LOG, each.segment_id)
        assert record is not None
        for _, ref in record.objects.present():
            stored = world.objects.head(ref.key)
            found = (stored.size_bytes, stored.checksum, stored.version_id)
            assert found == (ref.size_bytes, ref.checksum, ref.version_id)
    assert before <= {each.version_id for each in world.objects.list_versions("")}
    assert list(world.objects.list_uploads("")) == []
    assert world.apply(done.plan).was_over


def test_three_requests_a_segment_leave_the_process(versitygw: VersityGateway) -> None:
    """Counted where they are sent: one copy an object; beside them listings, and versioning once."""
    world = on_server(versitygw, in_one=True)
    plan, asked = world.plan(), Counter[str]()
    events = cast(Any, world.store)._client.meta.events
    events.register("before-send.s3", lambda event_name, **_: asked.update([event_name.rpartition(".")[2]]))

    world.apply(plan, workers=4)

    pages = {"ListObjectVersions": 2, "ListMultipartUploads": 1, "GetBucketVersioning": 1}
    assert asked == {"CopyObject": 3 * 3, **pages}


def test_a_store_that_refuses_leaves_everything_as_it_was(versitygw: VersityGateway) -> None:
    """By parts, over markers: the first copy is refused, by a name and words of its own; record, segments and
    live keys are as before."""
    world = on_server(versitygw, in_one=False)
    plan, before, live_before = world.plan(), world.record, live(world)

    with pytest.raises(MarkerTakenForObject, match="--target topic or --target log_directory") as refused:
        world.apply(plan)
    assert refused.value.exit_code == AlreadyExists.exit_code

    assert live(world) == live_before
    assert (world.record.log_start, world.record.keep_until_ms) == (before.log_start, before.keep_until_ms)
    assert {each.generation for each in world.view(LOG).segments()} == {0}
    assert list(world.objects.list_uploads("")) == []
    assert world.events == []
