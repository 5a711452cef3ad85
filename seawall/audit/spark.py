"""The Spark session of one run of an audit verb, by the settings.

Owns the session's folder, which goes with the run. Credentials are the AWS SDK's own chain.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from seawall.settings import Settings
from seawall.spark import S3Access, spark_session


@contextmanager
def session(settings: Settings, root: str) -> Iterator[tuple[SparkSession, Path]]:
    """A local session that reaches `root`, and a folder for what the run needs while it lasts."""
    s3 = S3Access(endpoint_url=settings.s3.endpoint_url, region=settings.s3.region)
    with tempfile.TemporaryDirectory(prefix="seawall-audit-", ignore_cleanup_errors=True) as folder:
        yield spark_session(Path(folder), s3=s3 if root.startswith("s3a://") else None), Path(folder)
