"""A process that ingests in small commits, for a test to kill: FOLDER BOOTSTRAP TOPIC TABLES."""

from __future__ import annotations

import sys
from pathlib import Path

from audit_engine.ingest.kafka import KafkaReach
from audit_engine.ingest.spark import Ingest, IngestSource
from audit_engine.tables.spark import open_tables
from seawall.spark import spark_session

BATCH_RECORDS = 20


def main() -> None:
    folder, bootstrap, topic, tables = sys.argv[1:]
    spark = spark_session(Path(folder))
    client = {"bootstrap.servers": bootstrap}
    Ingest(
        spark,
        open_tables(spark, tables),
        IngestSource(topic=topic, client=client, reach=KafkaReach(client)),
        day=lambda: "2026-01-31",
        batch_records_max=BATCH_RECORDS,
        scratch=Path(folder),
    ).once()


if __name__ == "__main__":
    main()
