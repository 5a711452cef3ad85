"""The Spark session of one run of an audit verb, by the settings.

Owns the session's folder, which goes with the run. Credentials are the AWS SDK's own chain.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from audit_engine.tables.guard.spark import require_exclusive_commits
from audit_engine.tables.place import S3A
from seawall.settings import Settings
from seawall.spark import S3Access, spark_session


@contextmanager
def session(
    settings: Settings,
    root: str,
    *,
    is_only_driver: bool | None = None,
    master: str | None = None,
    is_batch: bool = False,
) -> Iterator[tuple[SparkSession, Path]]:
    """A session that reaches `root`, here or on `master`, and a folder for what the run needs while it lasts.

    `is_only_driver`: None for who only reads. Whoever writes and does not vouch for being alone gets an
    UnguardedStore from a store that lets a second writer cover a commit.
    """
    s3 = S3Access(endpoint_url=settings.s3.endpoint_url, region=settings.s3.region)
    with tempfile.TemporaryDirectory(prefix="seawall-audit-", ignore_cleanup_errors=True) as folder:
        own_s3 = s3 if root.startswith(S3A) else None
        spark = spark_session(Path(folder), s3=own_s3, master=master, is_batch=is_batch)
        if is_only_driver is False:
            require_exclusive_commits(spark, root)
        yield spark, Path(folder)
