"""What the screen cuts out of bodies is what Spark's own reader of JSON finds in them, or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.ingest.rows.pieces.spark import read_as
from audit_engine.run.digest.spark import OWN, own_reader
from audit_engine.run.screen import PLAIN
from audit_engine.wire.codec import BODIES

VECTORS = Path(__file__).parents[2] / "vectors" / "events"
MOST = 9 * 10**18 - 1  # what has nineteen digits and begins with a 9 is left to the judge


def bodies() -> dict[str, dict[str, Any]]:
    """By kind, as the checked-in vectors have them."""
    return {each.kind: json.loads((VECTORS / f"{each.kind}.json").read_bytes())["body"] for each in PLAIN}


def canonical(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def frame(spark: SparkSession, said: list[tuple[str, str | None]]) -> DataFrame:
    rows = [(at, kind, body) for at, (kind, body) in enumerate(said)]
    return spark.createDataFrame(rows, "at INT, kind STRING, body STRING")


def cut(spark: SparkSession, said: list[tuple[str, str | None]]) -> list[Row | None]:
    own = read_as(spark, own_reader(spark), OWN, "readOf", "kind", "body")
    found = frame(spark, said).withColumn("own", own).collect()
    return [row["own"] for row in sorted(found, key=lambda row: row["at"])]


def read(spark: SparkSession, said: list[tuple[str, str | None]]) -> list[Row]:
    """Spark's own reader."""
    schema = ", ".join(f"{name} {sql_type}" for name, (sql_type, _) in OWN.items())
    found = frame(spark, said).withColumn("own", F.from_json("body", schema)).collect()
    return [row["own"] for row in sorted(found, key=lambda row: row["at"])]


def test_what_our_writers_write_is_cut_as_it_is_read(spark: SparkSession) -> None:
    """Each kind, with every optional field there and away, and with numbers at their bounds."""
    said: list[tuple[str, str | None]] = []
    for kind, body in bodies().items():
        numbers = [name for name in OWN if name in body and OWN[name][1] == "long"]
        said += [(kind, canonical(body)), (kind, canonical(body | dict.fromkeys(BODIES[kind].optional)))]
        said += [(kind, canonical(body | {name: each})) for name in numbers for each in (0, -MOST, MOST)]
        said += [(kind, canonical(body | {"broker_id": number})) for number in (0, 7, 999_999_999)]

    found = cut(spark, said)

    assert None not in found
    assert found == read(spark, said)


def test_nothing_else_is_cut(spark: SparkSession) -> None:
    """Each byte of a body left out, doubled or replaced: what still looks right is read the same."""
    said: list[tuple[str, str | None]] = []
    for kind, body in bodies().items():
        whole = canonical(body)
        for at in range(len(whole)):
            other = "0" if whole[at] != "0" else '"'
            for instead in ("", 2 * whole[at], other):
                said.append((kind, whole[:at] + instead + whole[at + 1 :]))

    found, told = cut(spark, said), read(spark, said)

    assert [
        place for place, one, other in zip(said, found, told, strict=True) if one not in (None, other)
    ] == []
    assert 0 < sum(each is not None for each in found) < len(found) / 2


def test_what_is_spelled_in_another_way_is_left_to_the_judge(spark: SparkSession) -> None:
    """A blank, another order, a name twice, one more or one less, an escape, another kind, and nothing."""
    kind, body = next(iter(bodies().items()))
    whole = canonical(body)
    said: list[tuple[str, str | None]] = [
        (kind, json.dumps(body, sort_keys=True)),
        (kind, json.dumps(dict(sorted(body.items(), reverse=True)), separators=(",", ":"))),
        (kind, whole.replace("{", '{"broker_id":1,', 1)),
        (kind, canonical(body | {"zzz": 1})),
        (kind, canonical({name: value for name, value in body.items() if name != "log_start"})),
        (kind, canonical(body | {"directory_id": 'a"b'})),
        (kind, canonical(body | {"broker_id": 2**31})),
        (kind, whole + " "),
        ("log_start_advanced", whole),
        (kind, ""),
        (kind, None),
    ]

    assert cut(spark, said) == [None] * len(said)
