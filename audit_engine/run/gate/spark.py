"""The gate's expectations, evaluated by Great Expectations on Spark.

They are asked of what the slice comes to by emitter: sums and mosts, in one pass over it with all else that
is asked of the whole slice. Only booleans are asked for.

Owns the suite. Invariant: an expectation that raised is one that failed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # Spark's own convention

from audit_engine.run.gate import AHEAD_MAX_MS, QUARANTINED_SHARE_MAX, READ_SHARE_MIN, Expected
from audit_engine.run.groups.spark import EMITTER
from audit_engine.run.listening.spark import Seen

SUITE = "audit_slice"
NAMES = {
    "volume": "the slice has as many events as the runs before let expect",
    "read": "nearly all events are of kinds that are known here",
    "quarantined": "few records are in quarantine",
    "clocks": "no emitter's clock runs ahead of the broker's",
}


_PROFILE = (
    "cluster_id: STRING, broker_id: INT, component: STRING, events: BIGINT, unread: BIGINT, ahead_ms: BIGINT"
)


def evaluate(
    spark: SparkSession, seen: Seen, *, least: int, quarantined: int, docs: Path | None = None
) -> tuple[Expected, ...]:
    """`seen` is the slice by emitter: a few rows, whatever its size. `least`: so many events it must have;
    `docs` keeps the pages."""
    names = ("cluster_id", "broker_id", "component", "events", "unread", "ahead_ms")
    told = json.dumps([{name: row[name] for name in names} for row in seen.by_emitter])
    rows = spark.range(1).select(F.inline(F.from_json(F.lit(told), f"ARRAY<STRUCT<{_PROFILE}>>")))
    results = _validated(rows, _suite(least, seen.events), docs)
    found = [
        Expected(
            name=name, is_met=is_met, detail=NAMES[name] if is_met else f"not so: {NAMES[name]} ({told})"
        )
        for name, (is_met, told) in results.items()
        if name != "clocks"
    ]
    found.append(_quarantined(quarantined, seen.events))
    found.append(_clocks(seen, *results["clocks"]))
    return tuple(found)


def _suite(least: int, events: int) -> dict[str, Any]:
    # Asked before the package is imported: it would report its use otherwise.
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    from great_expectations.expectations.core import (
        ExpectColumnSumToBeBetween,
        ExpectColumnValuesToBeBetween,
    )

    return {
        "volume": ExpectColumnSumToBeBetween(column="events", min_value=least),
        "read": ExpectColumnSumToBeBetween(column="unread", max_value=int(events * (1 - READ_SHARE_MIN))),
        "clocks": ExpectColumnValuesToBeBetween(column="ahead_ms", max_value=AHEAD_MAX_MS),
    }


def _validated(rows: DataFrame, suite: dict[str, Any], docs: Path | None) -> dict[str, tuple[bool, str]]:
    """By name: whether it is met, and what was seen where it is not."""
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    source = context.data_sources.add_spark(name="audit", persist=False)
    batch = source.add_dataframe_asset(name="slice").add_batch_definition_whole_dataframe("whole")
    expectations = context.suites.add(gx.ExpectationSuite(name=SUITE))
    for each in suite.values():
        expectations.add_expectation(each)
    validation = context.validation_definitions.add(
        gx.ValidationDefinition(name=SUITE, data=batch, suite=expectations)
    )
    actions = [] if docs is None else [_pages(context, docs)]
    checkpoint = context.checkpoints.add(
        gx.Checkpoint(
            name=SUITE,
            validation_definitions=[validation],
            result_format={"result_format": "BOOLEAN_ONLY"},
            actions=actions,
        )
    )
    [ran] = checkpoint.run(batch_parameters={"dataframe": rows}).run_results.values()
    configs = [(each.expectation_config, each) for each in ran.results]
    by_column = {config.kwargs["column"]: _told(each) for config, each in configs if config is not None}
    return {name: by_column[each.column] for name, each in suite.items()}


def _told(result: Any) -> tuple[bool, str]:
    info = result.exception_info or {}
    raised = info.get("raised_exception", bool(info))  # otherwise by metric, and there only if one raised
    seen = (result.result or {}).get("observed_value")
    why = "it could not be evaluated" if raised else f"seen: {seen}" if seen is not None else "see the rows"
    return bool(result.success) and not raised, why


def _pages(context: Any, docs: Path) -> Any:
    from great_expectations.checkpoint.actions import UpdateDataDocsAction

    context.add_data_docs_site(
        site_name=SUITE,
        site_config={
            "class_name": "SiteBuilder",
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
            "store_backend": {
                "class_name": "TupleFilesystemStoreBackend",
                "base_directory": str(docs.absolute()),
            },
        },
    )
    return UpdateDataDocsAction(name="docs", site_names=[SUITE])


def _quarantined(quarantined: int, events: int) -> Expected:
    share = quarantined / max(1, quarantined + events)
    is_met = share <= QUARANTINED_SHARE_MAX
    detail = (
        NAMES["quarantined"] if is_met else f"not so: {quarantined} of {quarantined + events} records are"
    )
    return Expected(name="quarantined", is_met=is_met, detail=detail)


def _clocks(seen: Seen, is_met: bool, why: str) -> Expected:
    if is_met:
        return Expected(name="clocks", is_met=True, detail=NAMES["clocks"])
    ahead = [row for row in seen.by_emitter if row["ahead_ms"] > AHEAD_MAX_MS]
    found = sorted((tuple(row[name] for name in EMITTER), row["ahead_ms"]) for row in ahead)
    told = ", ".join(f"{broker}/{component} by {most} ms" for (_, broker, component), most in found)
    return Expected(
        name="clocks",
        is_met=False,
        detail=f"clocks run ahead of the broker's: {told or why}",
        emitters=tuple((cluster, broker, component) for (cluster, broker, component), _ in found),
    )
