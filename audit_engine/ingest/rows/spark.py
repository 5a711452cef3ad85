"""Kafka's records as rows: which envelope can be read, and which columns hold it.

    examined(records)   every record once: its place, the columns of its event, and `_reason`, null where the
                        envelope is readable, else why it is not
    events(examined)    the rows of audit_events
    quarantined(...)    the rows of audit_quarantine
    plain_events(records)   the rows of audit_events, of records that are all plain

What is read by Spark's own JSON reader follows `audit_engine.wire.decode` (a test holds them together), so
that no row goes through Python. Where they differ, this one takes more: a name given twice, a number where a
text belongs, bytes behind the object's end.

A value as our own writers spell it, which is nearly every one, is plain: a class of ours in the JVM goes
through its bytes once and cuts its columns out of them (`plain`). Any other is read the long way: as its
names with the text of each (`_texts`), to find what has no column, and its body as all that an event of any
kind may say (`_own`). That is SQL text that is made once: the same expressions built call by call took
seconds a batch.

Owns these transforms. Invariant: of a record whose envelope is readable nothing is refused and nothing is
lost: the body is a column, and of an envelope that has names without a column the whole value is in
`unrecognised`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.ingest.rows.pieces.spark import read_by
from audit_engine.ingest.rows.plain import PIECES
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
UNREADABLE = "seawall: a record has no readable envelope"
ODD = "seawall: a record is not spelled as our own writers do"
LOST = (RETENTION_OVERTOOK,)  # what a finding is; the other was never to be had

_DETAILS = {
    NO_VALUE: "the record has no value",
    OVERSIZED: f"the value has more than {EVENT_BYTES_MAX} bytes",
    NOT_JSON: "the value is not an object of JSON in UTF-8",
    TOO_NEW: f"the writer asks for a newer reader than {VERSION}; upgrade ingest, then replay",
}

# Of `examined`, beside the columns of the tables.
REASON, KEY, VALUE, WRONG = "_reason", "_key", "_value", "_wrong"
PLAIN = "_plain"
_IS_ODD = f"({PLAIN} IS NULL)"
_PLACE = ("kafka_topic", "kafka_partition", "kafka_offset", "kafka_timestamp_ms")
_DATED_PLACE = ("ingest_day", *_PLACE)
_TEXT = f"CAST({VALUE} AS STRING)"
_LEAST = {
    **dict.fromkeys(("emitter_seq", "log_seq", "occurred_at_ms", "observed_at_ms", "partition"), 0),
    "leader_epoch": EPOCH_UNKNOWN,
    "version": 1,
    "min_reader": 1,
}
_LEAST_INSIDE = {"emitter": ("broker_id", "incarnation"), "follows": tuple(FOLLOWS)}


def plain_events(records: DataFrame, day: str) -> DataFrame:
    """Their rows, if all are spelled as our writers do; else whatever asks for them fails with ODD.

    `records` are as Spark's Kafka source gives them.
    """
    is_plain = F.expr(f"CASE WHEN {_IS_ODD} THEN raise_error('{ODD}') IS NOT NULL ELSE true END")
    columns = (f"{found} AS `{name}`" for name, found in _plain_columns().items())
    return _cut(records).where(is_plain).selectExpr(f"DATE {_text(day)} AS ingest_day", *_PLACE, *columns)


def examined(records: DataFrame) -> DataFrame:
    """`records` as Spark's Kafka source gives them."""
    frame = _cut(records)
    for step in _steps():
        frame = frame.selectExpr(*step)
    return frame


def events(examined_records: DataFrame, day: str, *, all_readable: bool = False) -> DataFrame:
    """The records whose envelope can be read; `day` is the commit's.

    With `all_readable`, whatever asks for the rows fails with UNREADABLE in its message if one record is not.
    """
    dated = F.lit(day).cast("date").alias("ingest_day")
    rest = [column.name for column in EVENT_COLUMNS if column.name != "ingest_day"]
    refused = f"raise_error('{UNREADABLE}') IS NOT NULL" if all_readable else "false"
    wanted = f"CASE WHEN {REASON} IS NULL THEN true ELSE {refused} END"
    return examined_records.where(wanted).select(dated, *rest)


def quarantined(examined_records: DataFrame, day: str) -> DataFrame:
    """The records of which no envelope can be read; `day` is the commit's."""
    said = _map(_DETAILS.items())
    found = {
        "ingest_day": f"DATE {_text(day)}",
        "kafka_end_offset": "kafka_offset + 1",
        "reason": REASON,
        "detail": f"coalesce({said}[{REASON}], concat('missing or wrong: ', {WRONG}))",
        "key": KEY,
        "value": VALUE,
    }
    columns = [f"{found.get(each.name, each.name)} AS {each.name}" for each in QUARANTINE_COLUMNS]
    return examined_records.where(f"{REASON} IS NOT NULL").selectExpr(*columns)


@cache
def _steps() -> tuple[tuple[str, ...], ...]:
    """What is selected from `_cut`, from that, and so on; each names what the next one needs."""
    kept = (*_PLACE, KEY, VALUE, PLAIN)
    body, emitter, follows = (_in_texts(name) for name in ("body", "emitter", "follows"))
    inside_has_more = (
        f"({_beyond(f'json_object_keys({emitter})', EMITTER)}"
        f" OR {_beyond(f'json_object_keys({follows})', FOLLOWS)})"
    )
    texts = f"from_json({_TEXT}, 'MAP<STRING, STRING>', {_map(JSON_OPTIONS.items())})"
    return (
        (
            *kept,
            f"CASE WHEN {_IS_ODD} THEN {_parsed(_TEXT, _outer())} END AS _seen",
            f"CASE WHEN {_IS_ODD} AND is_valid_utf8({VALUE}) THEN {texts} END AS _texts",
        ),
        (
            *(*kept, "_seen"),
            "map_keys(_texts) AS _names",
            f"{body} AS _body",
            f"json_object_keys({body}) AS _body_names",
            f"{inside_has_more} AS _inside_has_more",
            f"CASE WHEN {_IS_ODD} THEN {_parsed(body, _own())} END AS _own",
        ),
        (
            *(*kept, "_seen", "_names", "_body", "_inside_has_more"),
            f"CASE WHEN NOT {_IS_ODD} OR ({_is_sound()}) THEN '' ELSE {_wrong()} END AS {WRONG}",
            f"{_is_read()} AS _is_read",
        ),
        (
            *_PLACE,
            WRONG,
            f"{_reason()} AS {REASON}",
            f"CASE WHEN {_reason()} IS NOT NULL THEN {KEY} END AS {KEY}",
            f"CASE WHEN {_reason()} IS NOT NULL THEN {VALUE} END AS {VALUE}",
            *(
                f"CASE WHEN {_IS_ODD} THEN {odd} ELSE {_plain_columns()[name]} END AS `{name}`"
                for name, odd in _odd_columns().items()
            ),
        ),
    )


_HASH = f"xxhash64({VALUE})"


@cache
def _plain_columns() -> dict[str, str]:
    """By column of audit_events, its place and day apart: of what was cut out of a plain value."""
    same = {name: f"{PLAIN}.`{name}`" for name in PIECES}
    return _in_order(
        same
        | {
            "is_first": f"{PLAIN}.is_first IS NOT NULL",
            "log_id": f"concat({PLAIN}.topic_id, ':', {PLAIN}.`partition`)",
            "payload_hash": _HASH,
            "is_read": "true",
            "unrecognised": "CAST(NULL AS STRING)",
        }
    )


def _odd_columns() -> dict[str, str]:
    """The same of any other value."""
    same = ("kind", "event_id", "emitter_seq", "cluster_id", *FREE, "occurred_at_ms", "observed_at_ms")
    more = f"_inside_has_more OR {_beyond('_names', (*NEEDED, *FREE))}"
    return _in_order(
        {
            **{name: f"_seen.{name}" for name in (*same, "version")},
            **{f"emitter_{name}": f"_seen.emitter.{name}" for name in EMITTER},
            **{f"follows_{name}": f"_seen.follows.{name}" for name in FOLLOWS},
            "is_first": "array_contains(_names, 'follows')",
            "log_id": "concat(_seen.topic_id, ':', _seen.partition)",
            "payload_hash": _HASH,
            "is_read": "_is_read",
            "body": "_body",
            "unrecognised": f"CASE WHEN {more} THEN {_TEXT} END",
        }
    )


def _in_order(found: dict[str, str]) -> dict[str, str]:
    return {column.name: found[column.name] for column in EVENT_COLUMNS if column.name not in _DATED_PLACE}


def _cut(records: DataFrame) -> DataFrame:
    """The records with what PlainEvents cuts out of each; null of a value that is not plain."""
    read = read_by(records.sparkSession, "value")
    return records.select(
        F.col("topic").alias("kafka_topic"),
        F.col("partition").alias("kafka_partition"),
        F.col("offset").alias("kafka_offset"),
        F.unix_millis("timestamp").alias("kafka_timestamp_ms"),
        F.col("key").alias(KEY),
        F.col("value").alias(VALUE),
        read.alias(PLAIN),
    )


def _outer() -> dict[str, str]:
    """The envelope's fields with its inner objects, and the body as text."""
    inner = {"emitter": _struct(EMITTER.items()), "follows": _struct(FOLLOWS.items())}
    return {**NEEDED, **FREE, **inner}


@cache
def _own() -> dict[str, str]:
    """Each name that some kind has, with the type of the first kind that has it; a second type is text."""
    found: dict[str, str] = {}
    for fields in OWN_FIELDS.values():
        for each in fields:
            found.setdefault(each.name, each.sql_type)
    return found


def _typed(fields: dict[str, str]) -> Iterable[tuple[str, str]]:
    """With the place where Spark's reader puts what it found damaged."""
    return {**fields, DAMAGED: "STRING"}.items()


def _parsed(text: str, fields: dict[str, str]) -> str:
    schema = ", ".join(f"`{name}` {spelled}" for name, spelled in _typed(fields))
    return f"from_json({text}, {_text(schema)}, {_map(JSON_OPTIONS.items())})"


def _struct(fields: Iterable[tuple[str, str]]) -> str:
    return f"STRUCT<{', '.join(f'`{name}`: {spelled}' for name, spelled in fields)}>"


def _in_texts(name: str) -> str:
    return f"try_element_at(_texts, {_text(name)})"


def _is_sound() -> str:
    """Nothing is wrong with the envelope."""
    needed = (
        *(f"_seen.{name}" for name in NEEDED if name != "body"),
        *(f"_seen.emitter.{name}" for name in EMITTER),
    )
    follows = " AND ".join(f"_seen.follows.{name} IS NOT NULL" for name in FOLLOWS)
    return " AND ".join(
        (
            f"_seen.{DAMAGED} IS NULL",
            "_body_names IS NOT NULL",
            *(f"{name} IS NOT NULL" for name in needed),
            f"(_seen.follows IS NULL OR ({follows}))",
            f"NOT ({_is_too_low()})",
        )
    )


def _is_too_low() -> str:
    """Compared and never counted with: one record at the edge of its type must not stop them all."""
    least = {f"_seen.{name}": number for name, number in _LEAST.items()}
    least |= {f"_seen.{outer}.{name}": 0 for outer, names in _LEAST_INSIDE.items() for name in names}
    return " OR ".join(f"coalesce({name} < {number}, false)" for name, number in least.items())


def _wrong() -> str:
    """What of the envelope is missing or not allowed, in words; empty for nothing."""
    emitter = " OR ".join(f"_seen.emitter.{name} IS NULL" for name in EMITTER)
    follows = " OR ".join(f"_seen.follows.{name} IS NULL" for name in FOLLOWS)
    missing = ", ".join(_when(f"_seen.{name} IS NULL", name) for name in NEEDED if name != "body")
    damaged = f"_seen.{DAMAGED} IS NOT NULL"
    parts = (
        _when(damaged, "a field has another type than it should, or JSON is broken"),
        f"nullif(concat_ws(', ', {missing}, {_when('_body IS NULL', 'body')}), '')",
        _when(emitter, "emitter"),
        _when(f"_seen.follows IS NOT NULL AND ({follows})", "follows"),
        _when("_body IS NOT NULL AND _body_names IS NULL", "body is no object"),
        _when(_is_too_low(), "a number is below its least"),
    )
    return f"concat_ws('; ', {', '.join(parts)})"


def _reason() -> str:
    return (
        f"CASE WHEN {VALUE} IS NULL THEN {_text(NO_VALUE)}"
        f" WHEN length({VALUE}) > {EVENT_BYTES_MAX} THEN {_text(OVERSIZED)}"
        f" WHEN NOT {_IS_ODD} THEN NULL"
        f" WHEN _names IS NULL THEN {_text(NOT_JSON)}"
        f" WHEN _seen.min_reader > {VERSION} THEN {_text(TOO_NEW)}"
        f" WHEN {WRONG} != '' THEN {_text(NOT_AN_ENVELOPE)} END"
    )


def _is_read() -> str:
    """The kind is known, it names what it is about, and its own fields are all there, as they should be."""
    by_kind = " ".join(
        f"WHEN {_text(kind)} THEN {_has_all(fields, PLACE_OF[kind])}" for kind, fields in OWN_FIELDS.items()
    )
    return f"(_own.{DAMAGED} IS NULL AND CASE _seen.kind {by_kind} ELSE false END)"


def _has_all(fields: tuple[OwnField, ...], place: tuple[str, ...]) -> str:
    held = [f"_seen.{name} IS NOT NULL" for name in place]
    for each in fields:
        if not each.is_optional:
            held.append(f"_own.`{each.name}` IS NOT NULL")
        if each.allowed is not None:
            allowed = ", ".join(map(_text, each.allowed))
            held.append(f"(_own.`{each.name}` IS NULL OR _own.`{each.name}` IN ({allowed}))")
    return f"({' AND '.join(held)})" if held else "true"


def _beyond(names: str, known: Iterable[str]) -> str:
    """`names` has others than those that are `known`."""
    all_known = f"array({_names(known)})"
    return (
        f"coalesce(CASE WHEN {names} = {all_known} THEN false"
        f" ELSE size(array_except({names}, {all_known})) > 0 END, false)"
    )


def _names(names: Iterable[str]) -> str:
    return ", ".join(_text(name) for name in sorted(names))


def _when(condition: str, then: str) -> str:
    return f"CASE WHEN {condition} THEN {_text(then)} END"


def _map(pairs: Iterable[tuple[str, str]]) -> str:
    return f"map({', '.join(f'{_text(name)}, {_text(value)}' for name, value in pairs)})"


def _text(text: str) -> str:
    """As a literal of SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
