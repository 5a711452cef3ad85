"""Fault 17 from the disk to the remedy once more: found by runs of the audit, told of by the verb."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from seawall.local.bucket import LocalBucket
from tests.audit_engine.alerts.receiver import receiver
from tests.audit_engine.whole_path.audited import Audited
from tests.seawall.cli.calling import call
from tests.seawall.cli.test_alerts import environ as alert_environ
from tests.seawall.remedies.shared import share
from tests.seawall.remedies.test_corrupt_follower import TOPIC, Finding, is_kept_from_leading, watched


@dataclass(frozen=True, slots=True, kw_only=True)
class ByTables:
    """Ingested, judged by a run of the audit, told by the verb that reads its tables."""

    audited: Audited

    def findings(self) -> list[Finding]:
        self.audited.judge()
        [log] = self.audited.logs(TOPIC)
        return [each for each in self.audited.findings() if f"/{log.topic_id}" in each["subject"]]

    def alert(self, finding: Finding) -> bytes:
        folder = self.audited.folder
        with receiver() as receiving:
            environ = alert_environ(folder / "alerts", receiving.url)
            delivered = call("alerts", "deliver", "--tables", str(folder / "tables"), environ=environ)
            assert delivered.status == 0, delivered.stderr
            return [each.body for each in receiving.taken if finding["finding_id"] in each.body.decode()][-1]


@pytest.mark.long
@pytest.mark.timeout(3000)  # runs of the audit besides
def test_a_corrupt_follower_is_found_by_runs_of_the_audit_and_kept_from_leading(
    bucket: LocalBucket, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ingest, tables, runs, and the verb that tells of them, in place of machine and message."""
    with watched(bucket, tmp_path, spark) as audited:
        share(spark, tmp_path, monkeypatch)
        is_kept_from_leading(audited, ByTables(audited=audited), tmp_path)
