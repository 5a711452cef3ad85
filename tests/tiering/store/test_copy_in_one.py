"""A version brought back by one request, on a real S3 server; and why that is not for every store.

versitygw ignores `If-None-Match: *` on CopyObject, as moto does, and AWS does not: so the one request is
taken only where no other endpoint is named, and by parts it is refused here over a live object.
"""

from __future__ import annotations

import pytest

from rules.identity import ObjectRef
from seawall.connections import segment_store
from seawall.settings import Settings
from tests.cluster.versitygw import VersityGateway
from tests.tiering.store.contract import put, walk
from tiering.store.errors import AlreadyExists, StoredDiffers
from tiering.store.s3 import S3Store, S3StoreSettings


def _store(gateway: VersityGateway, *, in_one: bool) -> S3Store:
    settings = S3StoreSettings(
        bucket=gateway.new_bucket(),
        endpoint_url=gateway.endpoint_url,
        region="us-east-1",
        copies_where_absent=in_one,
    )
    return S3Store(settings, gateway.session())


def _marked(store: S3Store) -> ObjectRef:
    ref = put(store, "a/b.log", b"content" * 1000)
    store.mark_deleted(ref.key)
    return ref


def test_one_request_brings_a_version_back_over_its_marker(versitygw: VersityGateway) -> None:
    """The answer has the new version and the store's own checksum; nothing else was asked."""
    store = _store(versitygw, in_one=True)
    ref = _marked(store)

    version_id = store.copy_version(ref)

    live = store.head(ref.key)
    assert (live.size_bytes, live.checksum, live.version_id) == (ref.size_bytes, ref.checksum, version_id)
    assert version_id not in (None, ref.version_id)
    assert walk(store.uploads_page, "") == []


def test_other_bytes_than_on_record_do_not_stay_live(versitygw: VersityGateway) -> None:
    """The store tells another checksum: a marker over the copy again, and every version still there."""
    store = _store(versitygw, in_one=True)
    ref = _marked(store)

    with pytest.raises(StoredDiffers, match="is on record"):
        store.copy_version(ref._replace(checksum="AAAAAAAAAAA="))

    assert walk(store.keys_page, "") == []
    assert ref.version_id in {each.version_id for each in walk(store.versions_page, "")}


def test_this_server_does_not_know_the_condition_on_a_copy(versitygw: VersityGateway) -> None:
    """What decision 5 measured. Should it know it one day, this fails, and the decision can be looked at."""
    store = _store(versitygw, in_one=True)
    ref = put(store, "a/b.log", b"content")
    client = versitygw.session().client("s3", endpoint_url=versitygw.endpoint_url)
    client.put_object(Bucket=store.bucket, Key=ref.key, Body=b"somebody else's")

    store.copy_version(ref)

    assert len(walk(store.versions_page, "")) == 3
    assert store.head(ref.key).size_bytes == ref.size_bytes


def test_by_parts_it_refuses_to_cover_a_live_object(versitygw: VersityGateway) -> None:
    """The condition on the finish holds: no version more, and nothing left under way."""
    store = _store(versitygw, in_one=False)
    ref = put(store, "a/b.log", b"content")

    with pytest.raises(AlreadyExists):
        store.copy_version(ref)

    assert [each.version_id for each in walk(store.versions_page, "")] == [ref.version_id]
    assert walk(store.uploads_page, "") == []


@pytest.mark.parametrize(("endpoint_url", "in_one"), [(None, True), ("http://127.0.0.1:1", False)])
def test_only_aws_itself_is_taken_at_its_word(
    monkeypatch: pytest.MonkeyPatch, endpoint_url: str | None, in_one: bool
) -> None:
    """Where an endpoint is named it is some other store: the condition is put where it is known to hold."""
    seen: list[S3StoreSettings] = []
    monkeypatch.setattr("tiering.store.s3.S3Store", lambda settings: seen.append(settings))
    s3 = {"bucket": "some-bucket"} | ({"endpoint_url": endpoint_url} if endpoint_url else {})

    segment_store(Settings.model_validate({"s3": s3}))

    assert [each.copies_where_absent for each in seen] == [in_one]
