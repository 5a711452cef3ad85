"""A slice's digest: what one pass makes of it is what its events say, however they lie in files and tasks."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.digest import spark as digest_module
from audit_engine.run.digest.spark import Parts, digest, of_emitters, of_logs, twice, unlike
from audit_engine.run.evidence.spark import told
from audit_engine.run.screen import PLAIN
from audit_engine.tables.columns import EVENTS
from rules.events import Heartbeat, LogBaseline, LogEvent
from rules.machine import Told
from rules.machine.spans import normal
from tests.audit_engine.run.evidence import Evidence
from tests.audit_engine.run.test_listening import maimed
from tests.audit_engine.run.test_run import beats, moved
from tests.audit_engine.run.test_screen import begun, quiet_day
from tests.rules.machine.histories import HOUR_MS

CLUSTERS = 30
Speech = dict[tuple[Any, ...], dict[str, Any]]  # by log and speaker


def days() -> dict[str, list[Told]]:
    """Of as many clusters a quiet day each, behind a history that some hear too: in order, shuffled, maimed.
    Of two an act is told once more, in other words."""
    found = {}
    for seed in range(CLUSTERS):
        name, chance = f"cluster-{seed:02}", random.Random(seed)
        h = begun(seed)
        quiet, _ = quiet_day(h, seed * 3)
        said = beats([moved(each, name) for each in (h.told if seed % 3 else quiet)], name, h.now_ms)
        if seed % 4 == 1:
            chance.shuffle(said)
        found[name] = maimed(said, chance) if seed % 4 == 3 else said
        if seed in (1, 2):
            act: Any = next(each for each in said if isinstance(each.event, LogBaseline))
            other = replace(act.event, occurred_at_ms=act.event.occurred_at_ms + 1)
            found[name].append(replace(act, event=other, seq=act.seq + 10_000, log_seq=None))
    return found


def by_speaker(said: Iterable[Told], as_of_ms: int) -> Speech:
    """What the digest is to say of each log and speaker, counted event by event."""
    heard: dict[tuple[Any, ...], list[Told]] = defaultdict(list)
    for one in said:
        if isinstance(one.event, LogEvent) and one.observed_at_ms <= as_of_ms:
            key = (*one.event.log, *one.speaker)
            heard[key].append(one)
    found: Speech = {}
    for key, every in heard.items():
        line = sorted((each for each in every if each.log_seq is not None), key=lambda each: each.order)
        numbers = [each.log_seq or 0 for each in line]
        found[key] = {
            "events": len(every),
            "numbers": [end for span in normal((n, n + 1) for n in numbers) for end in span],
            "first_ms": min((each.observed_at_ms for each in line), default=None),
            "last_ms": max((each.observed_at_ms for each in line), default=None),
            "is_one_line": all(
                later == earlier + 1 and behind.seq > before.seq
                for (earlier, later), (before, behind) in zip(pairwise(numbers), pairwise(line), strict=True)
            ),
        }
    for log in {key[:3] for key in found}:
        is_in_line = all(own["is_one_line"] for key, own in found.items() if key[:3] == log)
        of_log = [each for key, every in heard.items() if key[:3] == log for each in every]
        fallen = falls(of_log) if is_in_line else defaultdict(int)
        for key, own in found.items():
            if key[:3] == log:
                del own["is_one_line"]
                own |= {"is_in_line": is_in_line, "falls": fallen[key[3:]]}
    return found


def falls(said: Iterable[Told]) -> Mapping[tuple[Any, ...], int]:
    found: dict[tuple[Any, ...], int] = defaultdict(int)
    highest = -1
    for each in sorted(said, key=lambda told: told.order):
        mark = getattr(each.event, "high_watermark", None) if isinstance(each.event, PLAIN) else None
        if mark is not None and each.log_seq is not None:
            found[each.speaker] += mark < highest
            highest = max(highest, mark)
    return found


def spoken(seen: Parts, names: Iterable[str]) -> Speech:
    found: Speech = {}
    for row in of_logs(seen).collect():
        for each in row["told"]:
            speaker = (each["broker_id"], each["component"], each["incarnation"])
            key = (row["cluster_id"], row["topic_id"], row["partition"], *speaker)
            found[key] = {name: each[name] for name in names}
    return found


def all_of(seen: Parts) -> tuple[Any, ...]:
    """The digest, in one form."""
    logs = {tuple(row[:4]): sorted(map(str, row["told"])) for row in of_logs(seen).collect()}
    emitters = {}
    for row in of_emitters(seen).collect():
        counts = row.asDict()
        numbers = counts.pop("numbers")
        ends, follows = counts.pop("elsewhere"), counts.pop("follows")
        pairs = [*zip(follows[::2], follows[1::2], strict=True)]
        emitters[row[:4]] = (
            str(counts),
            [*zip(numbers[::2], numbers[1::2], strict=True)],
            sorted(counts.pop("twice")),
            normal(zip(ends[::2], ends[1::2], strict=True)),
            sorted(set(pairs)),
        )
    doubled = sorted(map(tuple, twice(of_emitters(seen)).collect()))
    return logs, emitters, doubled, sorted(map(tuple, unlike(seen).collect()))


def by_columns(rows: DataFrame) -> bool:
    """Whether the digest reads them as they lie in files."""
    plan: Any = rows.select(*digest_module.ASKED)._jdf.queryExecution().executedPlan()
    made = digest_module.made(rows.sparkSession, 0, with_bodies=True)
    made.of(plan)
    return bool(made.isByColumns())


@pytest.mark.slow
def test_it_is_what_the_events_say(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Thirty clusters' days, event by event; then from many tasks, from one that gives out what it holds at
    each row, and in another order: the same. Without readings no log is in line, and else it is the same."""
    said = days()
    as_of_ms = max(each.observed_at_ms for own in said.values() for each in own) - HOUR_MS
    for own in said.values():  # and a later run of each last speaker, of which nothing is due
        last = own[-1]
        later = last.speaker._replace(incarnation=99)
        own.append(replace(last, speaker=later, observed_at_ms=as_of_ms + 1))
    evidence = Evidence(spark, tmp_path)
    evidence.add(each for own in said.values() for each in own)
    lying = spark.read.format("delta").load(f"{evidence.root}/{EVENTS}")
    rows = told(lying)

    seen = digest(rows, as_of_ms)
    wanted = by_speaker((each for own in said.values() for each in own), as_of_ms)
    first = next(iter(wanted.values()))
    assert spoken(seen, first) == wanted
    in_line = {key[:3] for key, own in wanted.items() if own["is_in_line"]}
    assert 5 < len(in_line) < len({key[:3] for key in wanted})
    assert any(own["falls"] for own in wanted.values())

    whole = all_of(seen)
    own_numbers = {
        (row["cluster_id"], row["broker_id"], row["component"], row["incarnation"]): row
        for row in of_emitters(seen).collect()
    }
    for cluster, own in said.items():
        for speaker in {each.speaker for each in own}:
            run = (cluster, *speaker)
            row = own_numbers[run]
            due = [each for each in own if each.speaker == speaker and each.observed_at_ms <= as_of_ms]
            numbers = Counter(each.seq for each in due)
            assert row["events"] - row["left"] == len(due)
            assert row["numbers"] == [end for span in normal((n, n + 1) for n in numbers) for end in span]
            assert sorted(row["twice"]) == sorted({n // 64 for n, count in numbers.items() if count > 1})
            told_to = [each.event.last_seq + 1 for each in due if isinstance(each.event, Heartbeat)]
            assert row["told_to"] == max(told_to, default=None)
    assert whole[2], "some number came twice"
    assert whole[3], "some act was told in other words"

    assert by_columns(lying)
    assert not by_columns(rows)
    assert all_of(digest(lying, as_of_ms)) == whole
    some = "kafka_offset % 3 > 0 AND (observed_at_ms < 1800000000000 OR emitter_component = 'agent')"
    assert by_columns(lying.where(some))
    assert all_of(digest(lying.where(some), as_of_ms)) == all_of(digest(rows.where(some), as_of_ms)) != whole
    assert all_of(digest(rows.repartition(7), as_of_ms)) == whole
    backwards = rows.coalesce(1).sortWithinPartitions(F.desc("observed_at_ms"), F.desc("emitter_seq"))
    assert all_of(digest(backwards, as_of_ms)) == whole
    monkeypatch.setattr(digest_module, "HELD_BYTES", 1)
    assert all_of(digest(rows, as_of_ms)) == whole
    monkeypatch.setattr(digest_module, "READINGS_BYTES", -1)
    blind = spoken(digest(rows, as_of_ms), first)
    assert {key: {**own, "is_in_line": False, "falls": 0} for key, own in wanted.items()} == blind


@pytest.mark.slow
def test_each_of_thousands_of_logs_is_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    """One task that sees each row of a few logs in turn for two thousand others, by names short and long."""
    said = [each for name, own in days().items() if name in ("cluster-00", "cluster-05") for each in own]
    evidence = Evidence(spark, tmp_path)
    evidence.add(said)
    lying = spark.read.format("delta").load(f"{evidence.root}/{EVENTS}")
    as_of_ms = max(each.observed_at_ms for each in said)
    copy = F.when(F.col("id") % 3 == 0, F.col("id").cast("string")).otherwise(
        F.concat("topic_id", F.lit("-a name that is longer than two dozen bytes-"), "id")
    )
    many = told(lying).crossJoin(spark.range(2_000)).withColumn("topic_id", copy).drop("id").coalesce(1)

    wanted = {
        (row["cluster_id"], row["partition"]): (row["topic"], sorted(map(str, row["told"])))
        for row in of_logs(digest(lying, as_of_ms)).collect()
    }
    found = of_logs(digest(many, as_of_ms)).collect()

    assert len({(row["cluster_id"], row["topic_id"]) for row in found}) == len(found) == 2_000 * len(wanted)
    for row in found:
        assert (row["topic"], sorted(map(str, row["told"]))) == wanted[row["cluster_id"], row["partition"]]
