"""Records as JSON: what goes in comes out, equal records are equal bytes, nothing wrong gets through."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiering.segments.strategies import (
    LOG,
    gap,
    log_record,
    log_records,
    segment,
    segment_records,
)
from tiering.log.crc import crc32c
from tiering.segments.codec import decode, decode_log, decode_segment, encode_log, encode_segment
from tiering.segments.errors import RecordInvalid, RecordMalformed, RecordTooNew
from tiering.segments.keys import log_key, parse_key, segment_key
from tiering.segments.records import (
    INT64_MAX,
    GapCause,
    LogRecord,
    SegmentObjects,
    SegmentRecord,
    SegmentState,
)
from tiering.segments.seal import NAME, ROW, open_many, row_of, sealed

RECORD = segment(7, 100, 200, epochs=((3, 100), (5, 150)))
LOG_RECORD = log_record(5, gaps=(gap(10, 20),), keep_until_ms=1)


def _members(value: bytes) -> dict[str, Any]:
    """A record's JSON, its seal apart."""
    members: dict[str, Any] = json.loads(value)
    del members[NAME]
    return members


def _resealed(body: bytes, like: SegmentRecord | LogRecord) -> bytes:
    """A body under the seal that a record with that body would have."""
    if isinstance(like, SegmentRecord):
        return sealed(body, segment_key(like.log, like.segment_id), like.log.cluster_id, row_of(like))
    return sealed(body, log_key(like.log), like.log.cluster_id)


def _changed(record: SegmentRecord | LogRecord, change: Callable[[dict[str, Any]], object]) -> bytes:
    value = encode_segment(record) if isinstance(record, SegmentRecord) else encode_log(record)
    members = _members(value)
    change(members)
    return _resealed(json.dumps(members).encode(), record)


@pytest.mark.slow
@given(segment_records())
def test_a_segments_record_survives(record: SegmentRecord) -> None:
    """decode(encode(r)) == r, what is not recognised included."""
    assert decode_segment(encode_segment(record)) == record


@pytest.mark.slow
@given(log_records())
def test_a_logs_record_survives(record: LogRecord) -> None:
    """decode(encode(r)) == r, what is not recognised included."""
    assert decode_log(encode_log(record)) == record


@pytest.mark.slow
@given(segment_records(), st.randoms(use_true_random=False))
def test_bytes_are_stable(record: SegmentRecord, chance: Any) -> None:
    """However a writer ordered and spaced its JSON, the record is written again as the same bytes."""
    canonical = encode_segment(record)
    members = list(_members(canonical).items())
    chance.shuffle(members)
    respelled = json.dumps(dict(members), indent=1, ensure_ascii=False).encode("utf-8", "surrogatepass")

    assert canonical.isascii()
    assert encode_segment(decode_segment(_resealed(respelled, record))) == canonical


def test_a_newer_record_that_allows_it_is_read_and_kept_whole() -> None:
    """Of version 9 with min_reader 1 the known fields are read; new ones at any depth come out again."""

    def newer(members: dict[str, Any]) -> None:
        members |= {"version": 9, "storage_class": {"name": "GLACIER", "since": [1, 2]}}
        members["objects"]["log"]["etag"] = "abc"
        members["objects"]["tags"] = {"size_bytes": 1}

    value = _changed(RECORD, newer)

    record = decode_segment(value)

    assert record.base_offset == 100
    assert _members(encode_segment(record)) == _members(value)
    advanced = replace(record, state=SegmentState.DELETE_STARTED)
    assert _members(encode_segment(advanced)) == _members(value) | {"state": "DELETE_STARTED"}


def test_what_was_not_understood_of_an_object_goes_with_the_object() -> None:
    """A record that drops an object does not keep half of it."""
    value = _changed(RECORD, lambda m: m["objects"]["log"].update(etag="abc"))
    without = replace(decode_segment(value), objects=SegmentObjects(), state=SegmentState.COPY_STARTED)

    assert json.loads(encode_segment(without))["objects"] == {}


def test_a_newer_record_that_does_not_allow_it_is_refused_as_such() -> None:
    """Too new is not malformed: the remedy is an upgrade."""
    value = _changed(RECORD, lambda m: m.update(version=2, min_reader=2))

    with pytest.raises(RecordTooNew) as caught:
        decode_segment(value)

    assert (caught.value.version, caught.value.min_reader, caught.value.supported) == (2, 2, 1)


def test_a_gap_for_a_reason_of_the_future_stays_a_gap() -> None:
    """An unknown cause is UNKNOWN here, and its name is written out again."""
    value = _changed(LOG_RECORD, lambda m: m["gaps"][0].update(cause="solar_flare"))

    record = decode_log(value)

    assert record.gaps[0].cause is GapCause.UNKNOWN
    assert json.loads(encode_log(record))["gaps"][0]["cause"] == "solar_flare"


WRONG_SEGMENTS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a name missing": lambda m: m.pop("data_end"),
    "a text for a number": lambda m: m.update(base_offset="100"),
    "true for a number": lambda m: m.update(generation=True),
    "a float for a number": lambda m: m.update(base_offset=100.0),
    "a number for a text": lambda m: m.update(topic=5),
    "a number for a truth": lambda m: m.update(has_txn_index=1),
    "null for a number": lambda m: m.update(size_bytes=None),
    "negative": lambda m: m.update(occurred_at_ms=-1),
    "over 64 bits": lambda m: m.update(max_timestamp_ms=INT64_MAX + 1),
    "another kind": lambda m: m.update(kind="log"),
    "no such state": lambda m: m.update(state="COPY_PAUSED"),
    "version 0": lambda m: m.update(version=0, min_reader=0),
    "a reader above the version": lambda m: m.update(min_reader=2),
    "no topic id": lambda m: m.update(topic_id="orders"),
    "no segment id": lambda m: m.update(segment_id="7"),
    "a segment id in capitals": lambda m: m.update(segment_id=m["segment_id"].upper()),
    "an empty event id": lambda m: m.update(event_id=""),
    "an empty range": lambda m: m.update(end_offset=100),
    "data beyond the end": lambda m: m.update(data_end=201),
    "more records than offsets": lambda m: m.update(record_count=101),
    "no records": lambda m: m.update(record_count=0, batch_count=0),
    "more batches than records": lambda m: m.update(batch_count=101),
    "no epochs": lambda m: m.update(leader_epochs=[]),
    "epochs that fall": lambda m: m.update(leader_epochs=[[5, 100], [3, 150]]),
    "epochs not from the base": lambda m: m.update(leader_epochs=[[3, 101]]),
    "an epoch behind the data": lambda m: m.update(leader_epochs=[[3, 100], [5, 200]]),
    "an epoch of three": lambda m: m.update(leader_epochs=[[3, 100, 1]]),
    "an epoch above the writer's": lambda m: m.update(leader_epoch=4),
    "a stem of nothing": lambda m: m.update(key_stem=""),
    "finished without a .log": lambda m: m["objects"].pop("log"),
    "finished without an .aux": lambda m: m["objects"].pop("aux"),
    "another size": lambda m: m["objects"]["log"].update(size_bytes=1),
    "no checksum": lambda m: m["objects"]["log"].pop("checksum"),
    "a checksum of no algorithm": lambda m: m["objects"]["aux"].update(checksum=":abc="),
    "an algorithm without a checksum": lambda m: m["objects"]["aux"].update(checksum="CRC64NVME:"),
    "neither of them": lambda m: m["objects"]["aux"].update(checksum="abc="),
    "a list of objects": lambda m: m.update(objects=[]),
}


@pytest.mark.parametrize("change", WRONG_SEGMENTS.values(), ids=WRONG_SEGMENTS)
def test_a_wrong_segment_is_malformed(change: Callable[[dict[str, Any]], object]) -> None:
    """Each known field is read strictly, and the rules of one record hold."""
    value = _changed(RECORD, change)

    with pytest.raises(RecordMalformed) as caught:
        decode_segment(value)

    assert "seal" not in str(caught.value)


WRONG_LOGS: dict[str, Callable[[dict[str, Any]], object]] = {
    "no lineage": lambda m: m.update(leader_epochs=[]),
    "a lineage above the claim": lambda m: m.update(leader_epochs=[[6, 0]]),
    "an empty gap": lambda m: m["gaps"][0].update(end_offset=10),
    "gaps that overlap": lambda m: m["gaps"].append(m["gaps"][0]),
    "a gap of a later epoch": lambda m: m["gaps"][0].update(leader_epoch=6),
    "a gap without a start": lambda m: m["gaps"][0].pop("start_offset"),
    "based on something before its claim": lambda m: m.update(claim_offset=9, based_on=8),
    "based on nothing behind its claim": lambda m: m.update(claim_offset=9),
    "an earlier claim as high": lambda m: m.update(earlier_claims=[[5, 1]]),
    "earlier claims that fall": lambda m: m.update(earlier_claims=[[3, 9], [4, 8]]),
    "a hold without an id": lambda m: m.update(holds=[{"hold_id": ""}]),
    "a text for an optional number": lambda m: m.update(keep_until_ms="soon"),
}


@pytest.mark.parametrize("change", WRONG_LOGS.values(), ids=WRONG_LOGS)
def test_a_wrong_log_is_malformed(change: Callable[[dict[str, Any]], object]) -> None:
    """Each known field is read strictly, and the rules of one record hold."""
    value = _changed(LOG_RECORD, change)

    with pytest.raises(RecordMalformed) as caught:
        decode_log(value)

    assert "seal" not in str(caught.value)


NOT_RECORDS = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "not UTF-8": b'{"kind":"\xff"}',
    "a name twice": b'{"kind":"segment","kind":"log"}',
    "NaN": b'{"kind":NaN}',
    "infinity by size": b'{"kind":1e999}',
    "a number of 5000 digits": b'{"kind":' + b"9" * 5000 + b"}",
    "nested without end": b'{"kind":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "nested too deep": b'{"kind":' + b"[" * 33 + b"]" * 33 + b"}",
}


@pytest.mark.parametrize("value", NOT_RECORDS.values(), ids=NOT_RECORDS)
def test_what_is_no_record_is_malformed(value: bytes) -> None:
    """Nothing but RecordMalformed comes of such bytes, however large."""
    with pytest.raises(RecordMalformed):
        decode_segment(value)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_words(value: bytes) -> None:
    """Arbitrary bytes never raise anything but RecordMalformed."""
    with pytest.raises(RecordMalformed):
        decode_log(value)


@pytest.mark.slow
@given(segment_records(), st.data())
def test_a_damaged_record_is_refused(record: SegmentRecord, data: st.DataObject) -> None:
    """One byte changed, anywhere: the seal does not fit any more, alone or among many."""
    value = bytearray(encode_segment(record))
    position = data.draw(st.integers(0, len(value) - 1))
    value[position] ^= data.draw(st.integers(1, 255))

    with pytest.raises((RecordMalformed, RecordTooNew)):
        decode_segment(bytes(value))
    key = segment_key(record.log, record.segment_id)
    assert not open_many([key], [bytes(value)], record.log.cluster_id)[1].any()


@pytest.mark.slow
@given(st.lists(segment_records(), min_size=1, max_size=5), st.data())
def test_seals_are_opened_together_as_alone(records: list[SegmentRecord], data: st.DataObject) -> None:
    """The rows under the seals of many are those of each; what does not fit takes no other along."""
    cluster_id = records[0].log.cluster_id
    records = [replace(each, log=each.log._replace(cluster_id=cluster_id)) for each in records]
    keys = [segment_key(each.log, each.segment_id) for each in records]
    values = [encode_segment(each) for each in records]
    strange = data.draw(st.integers(0, len(records)))
    keys.insert(strange, keys[0])
    values.insert(strange, data.draw(st.binary(max_size=200) | st.just(values[0][:-1] + b"]")))

    rows, fits = open_many(keys, values, cluster_id)

    assert fits.tolist() == [place != strange for place in range(len(keys))]
    packed = [row.tobytes() for place, row in enumerate(rows) if place != strange]
    assert packed == [row_of(each) for each in records]
    assert rows[strange].tobytes() == bytes(ROW.itemsize)


def test_a_seal_fits_one_key_and_one_cluster() -> None:
    """The same value elsewhere is not the same record."""
    key, value = segment_key(LOG, RECORD.segment_id), encode_segment(RECORD)

    assert open_many([key], [value], LOG.cluster_id)[1].all()
    assert not open_many([key], [value], "another")[1].any()
    assert not open_many([key + b"0"], [value], LOG.cluster_id)[1].any()


def test_a_row_that_is_no_base64_is_nobodys() -> None:
    """Under a CRC that fits, by whoever wrote it. No record beside it is given that row's place."""
    key, value = segment_key(LOG, RECORD.segment_id), encode_segment(RECORD)
    begin, digits = value.rindex(b'":"') + 3, len(b'01234567"}')
    body = value[:begin] + b"!!!!" + value[begin + 4 : -digits]
    strange = body + b'%08x"}' % crc32c(LOG.cluster_id.encode() + key + body)

    for values in ([strange], [value, strange], [strange, value]):
        rows, fits = open_many([key] * len(values), values, LOG.cluster_id)

        assert len(rows) == len(fits) == len(values)
        assert not fits[values.index(strange)]
        assert all(row.tobytes() == row_of(RECORD) for row in rows[fits])


def test_a_seal_of_another_record_is_broken() -> None:
    """A row that is not the record's is refused, though its CRC fits."""
    other = replace(RECORD, end_offset=300)
    value = _resealed(json.dumps(_members(encode_segment(RECORD))).encode(), other)

    with pytest.raises(RecordMalformed, match="seal"):
        decode_segment(value)


def test_the_key_and_the_value_name_the_same() -> None:
    """A value under another segment's or another log's key is malformed."""
    value = encode_segment(RECORD)
    own = parse_key(segment_key(LOG, RECORD.segment_id))
    assert own is not None

    assert decode(own, value) == RECORD
    for wrong in (own._replace(partition=4), own._replace(segment_id=segment(8, 0, 1).segment_id)):
        with pytest.raises(RecordMalformed):
            decode(wrong, value)
    with pytest.raises(RecordMalformed):
        decode(own._replace(segment_id=None), value)


@pytest.mark.parametrize(
    "wrong",
    [
        replace(RECORD, base_offset=-5),
        replace(RECORD, leader_epochs=()),
        replace(RECORD, objects=SegmentObjects()),
        replace(RECORD, unrecognised={"x": float("nan")}),
        replace(RECORD, unrecognised={"x": (1, 2)}),
        replace(RECORD, unrecognised={"x": b"bytes"}),
        replace(RECORD, occurred_at_ms=-1),
        replace(RECORD, topic="\ud800", event_id="e", key_stem=""),
    ],
    ids=range(8),
)
def test_a_wrong_record_is_not_written(wrong: SegmentRecord) -> None:
    """What could not be read back as itself is RecordInvalid before it is bytes."""
    with pytest.raises(RecordInvalid):
        encode_segment(wrong)


def test_a_wrong_log_is_not_written() -> None:
    """The same for a log's record."""
    with pytest.raises(RecordInvalid):
        encode_log(replace(LOG_RECORD, log_start=-1))
    with pytest.raises(RecordInvalid):
        encode_log(replace(LOG_RECORD, leader_epochs=()))
