"""Kafka's records as rows: which envelope can be read, and which columns hold it.

    examined(records)   every record, with what its value says as far as it can be read, and `reason`: null
                        where the envelope is readable, else why it is not
    events(examined)    the rows of audit_events
    quarantined(...)    the rows of audit_quarantine

What is read by Spark's own JSON reader follows `audit_engine.wire.decode` (a test holds them together), so
that no row goes through Python. Where they differ, this one takes more: a name given twice, a number where a
text belongs, bytes behind the object's end.

Owns these transforms. Invariant: of a record whose envelope is readable nothing is refused and nothing is
lost: what has no column is in `raw` or `unrecognised` as it came.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.spool.spool import EVENT_BYTES_MAX
from audit_engine.tables.columns import EVENT_COLUMNS, OWN_FIELDS, PLACE_OF, QUARANTINE_COLUMNS, OwnField
from audit_engine.wire.codec import EPOCH_UNKNOWN, VERSION

DAMAGED = "_damaged"  # what Spark's reader found to be no JSON, or of another type
JSON_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": DAMAGED,
    "allowNonNumericNumbers": "false",
    "maxNestingDepth": "64",
}

NEEDED = {
    "version": "INT",
    "min_reader": "INT",
    "kind": "STRING",
    "event_id": "STRING",
    "emitter": "STRING",
    "emitter_seq": "BIGINT",
    "cluster_id": "STRING",
    "occurred_at_ms": "BIGINT",
    "observed_at_ms": "BIGINT",
    "body": "STRING",
}
FREE = {
    "log_seq": "BIGINT",
    "topic_id": "STRING",
    "topic": "STRING",
    "partition": "INT",
    "leader_epoch": "INT",
    "replica": "STRING",
    "role": "STRING",
    "follows": "STRING",
}
EMITTER = {"broker_id": "INT", "component": "STRING", "incarnation": "BIGINT"}
FOLLOWS = {"incarnation": "BIGINT", "last_seq": "BIGINT"}

NO_VALUE = "no_value"
OVERSIZED = "oversized"
NOT_JSON = "not_json"
NOT_AN_ENVELOPE = "not_an_envelope"
TOO_NEW = "too_new"
RETENTION_OVERTOOK = "retention_overtook"
EXPIRED_BEFORE_FIRST = "expired_before_first_ingest"
LOST = (RETENTION_OVERTOOK,)  # what a finding is; the other was never to be had

_DETAILS = {
    NO_VALUE: "the record has no value",
    OVERSIZED: f"the value has more than {EVENT_BYTES_MAX} bytes",
    NOT_JSON: "the value is not an object of JSON in UTF-8",
    TOO_NEW: f"the writer asks for a newer reader than {VERSION}; upgrade ingest, then replay",
}


def _parsed(text: Column, fields: dict[str, str]) -> Column:
    schema = ", ".join(f"`{name}` {spelled}" for name, spelled in {**fields, DAMAGED: "STRING"}.items())
    return F.from_json(text, schema, JSON_OPTIONS)


def _missing(of: Column, names: dict[str, str]) -> Column:
    """The names among these that are null, with commas between; empty text for none."""
    return F.concat_ws(", ", *[F.when(of[name].isNull(), F.lit(name)) for name in names])


def _below(*least: tuple[Column, int]) -> Column:
    """Compared and never counted with: one record at the edge of its type must not stop them all."""
    return reduce(
        lambda left, right: left | right,
        [F.coalesce(column < lowest, F.lit(False)) for column, lowest in least],
    )


def examined(records: DataFrame) -> DataFrame:
    """`records` as Spark's Kafka source gives them."""
    text = F.when(F.expr("is_valid_utf8(value)"), F.col("value").cast("string"))
    outer = records.withColumns({"text": text}).withColumns(
        {"seen": _parsed(F.col("text"), {**NEEDED, **FREE}), "names": F.json_object_keys("text")}
    )
    seen = F.col("seen")
    inner = outer.withColumns(
        {
            "emitter": _parsed(seen["emitter"], EMITTER),
            "follows": _parsed(seen["follows"], FOLLOWS),
            "body_names": F.json_object_keys(seen["body"]),
        }
    )
    return inner.withColumn("wrong", _wrong()).withColumn("reason", _reason())


def _wrong() -> Column:
    """What of the envelope is missing or not allowed, in words; empty for nothing."""
    seen, emitter, follows = F.col("seen"), F.col("emitter"), F.col("follows")
    counts = ("emitter_seq", "log_seq", "occurred_at_ms", "observed_at_ms", "partition")
    too_low = _below(
        *[(seen[name], 0) for name in counts],
        *[(emitter[name], 0) for name in ("broker_id", "incarnation")],
        *[(follows[name], 0) for name in FOLLOWS],
        (seen["leader_epoch"], EPOCH_UNKNOWN),
        (seen["version"], 1),
        (seen["min_reader"], 1),
    )
    half_follows = seen["follows"].isNotNull() & (_missing(follows, FOLLOWS) != "")
    return F.concat_ws(
        "; ",
        F.when(
            seen[DAMAGED].isNotNull(), F.lit("a field has another type than it should, or JSON is broken")
        ),
        F.nullif(_missing(seen, NEEDED), F.lit("")),
        F.when(_missing(emitter, EMITTER) != "", F.lit("emitter")),
        F.when(half_follows, F.lit("follows")),
        F.when(seen["body"].isNotNull() & F.col("body_names").isNull(), F.lit("body is no object")),
        F.when(too_low, F.lit("a number is below its least")),
    )


def _reason() -> Column:
    seen = F.col("seen")
    return (
        F.when(F.col("value").isNull(), NO_VALUE)
        .when(F.length("value") > EVENT_BYTES_MAX, OVERSIZED)
        .when(F.col("names").isNull(), NOT_JSON)
        .when(seen["min_reader"] > VERSION, TOO_NEW)
        .when(F.col("wrong") != "", NOT_AN_ENVELOPE)
    )


def quarantined(examined_records: DataFrame, day: str) -> DataFrame:
    """The records of which no envelope can be read; `day` is the commit's."""
    said = F.create_map(*[F.lit(each) for pair in _DETAILS.items() for each in pair])
    detail = F.coalesce(said[F.col("reason")], F.concat(F.lit("missing or wrong: "), F.col("wrong")))
    return (
        examined_records.where(F.col("reason").isNotNull())
        .withColumns(
            {**_place(day), "kafka_end_offset": F.col("offset") + 1, "detail": detail},
        )
        .select(*[column.name for column in QUARANTINE_COLUMNS])
    )


def _place(day: str) -> dict[str, Column]:
    return {
        "ingest_day": F.lit(day).cast("date"),
        "kafka_topic": F.col("topic"),
        "kafka_partition": F.col("partition"),
        "kafka_offset": F.col("offset"),
        "kafka_timestamp_ms": F.unix_millis("timestamp"),
    }


def events(examined_records: DataFrame, day: str) -> DataFrame:
    """The records whose envelope can be read; `day` is the commit's."""
    seen, emitter, follows = F.col("seen"), F.col("emitter"), F.col("follows")
    own = {f"own.{name}": spelled for name, spelled in _own_on_the_wire().items()}
    schema = {name.removeprefix("own."): spelled for name, spelled in own.items()}
    readable = examined_records.where(F.col("reason").isNull()).withColumn(
        "own", _parsed(seen["body"], schema)
    )
    judged = readable.withColumns({"is_read": _is_read(), "has_more": _has_more()}).withColumn(
        "own", F.when(F.col("is_read"), F.col("own"))
    )
    columns = {
        **_place(day),
        **{name: seen[name] for name in ("kind", "event_id", "emitter_seq", "log_seq", "cluster_id")},
        "emitter_broker_id": emitter["broker_id"],
        "emitter_component": emitter["component"],
        "emitter_incarnation": emitter["incarnation"],
        "is_first": F.array_contains("names", "follows"),
        "follows_incarnation": follows["incarnation"],
        "follows_last_seq": follows["last_seq"],
        "log_id": F.concat(seen["topic_id"], F.lit(":"), seen["partition"]),
        **{name: seen[name] for name in ("topic_id", "topic", "partition", "leader_epoch")},
        **{name: seen[name] for name in ("replica", "role", "occurred_at_ms", "observed_at_ms", "version")},
        "payload_hash": F.xxhash64("value"),
        "is_read": F.col("is_read"),
        "raw": F.when(~F.col("is_read") | F.col("has_more"), seen["body"]),
        "unrecognised": F.when(_envelope_has_more(), F.col("text")),
        **_own_columns(),
    }
    return judged.select(*[columns[column.name].alias(column.name) for column in EVENT_COLUMNS])


def _own_on_the_wire() -> dict[str, str]:
    """Each name that some kind has, with the type of the first kind that has it; a second type is text."""
    found: dict[str, str] = {}
    for fields in OWN_FIELDS.values():
        for each in fields:
            found.setdefault(each.name, each.sql_type)
    return found


def _is_read() -> Column:
    """The kind is known, it names what it is about, and its own fields are all there, as they should be."""
    seen, own = F.col("seen"), F.col("own")
    by_kind = F.when(F.lit(False), False)
    for kind, fields in OWN_FIELDS.items():
        held = _has_all(fields)
        for name in PLACE_OF[kind]:
            held = held & seen[name].isNotNull()
        by_kind = by_kind.when(seen["kind"] == kind, held)
    return own[DAMAGED].isNull() & by_kind.otherwise(False)


def _has_all(fields: tuple[OwnField, ...]) -> Column:
    own = F.col("own")
    held = F.lit(True)
    for each in fields:
        if not each.is_optional:
            held = held & own[each.name].isNotNull()
        if each.allowed is not None:
            held = held & (own[each.name].isNull() | own[each.name].isin(*each.allowed))
    return held


def _has_more() -> Column:
    """The body has names that its kind does not have here."""
    kinds = F.create_map(
        *[
            each
            for kind, fields in OWN_FIELDS.items()
            for each in (F.lit(kind), F.array(*[F.lit(own.name) for own in fields]).cast("array<string>"))
        ]
    )
    known = F.coalesce(F.try_element_at(kinds, F.col("seen")["kind"]), F.array().cast("array<string>"))
    return F.size(F.array_except("body_names", known)) > 0


def _envelope_has_more() -> Column:
    seen = F.col("seen")

    def beyond(names: Column, known: dict[str, str]) -> Column:
        extra = F.size(F.array_except(names, F.array(*[F.lit(name) for name in known])))
        return F.coalesce(extra > 0, F.lit(False))

    return (
        beyond(F.col("names"), {**NEEDED, **FREE})
        | beyond(F.json_object_keys(seen["emitter"]), EMITTER)
        | beyond(F.json_object_keys(seen["follows"]), FOLLOWS)
    )


def _own_columns() -> dict[str, Column]:
    """Each column of a kind's own fields, null in the rows of kinds that do not say it."""
    own = F.col("own")
    return {
        each.column: own[each.name].cast(each.sql_type) for fields in OWN_FIELDS.values() for each in fields
    }
