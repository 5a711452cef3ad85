"""The one Spark session of the tests, in place of those that verbs would make themselves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from seawall.audit import spark as sessions


def share(spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process has one session, with the settings of the first."""

    @contextmanager
    def session(*_: object, **__: object) -> Iterator[tuple[SparkSession, Path]]:
        yield spark, folder

    monkeypatch.setattr(sessions, "session", session)
