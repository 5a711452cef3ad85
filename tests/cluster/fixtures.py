"""Servers as pytest fixtures: each started when first asked for, once for the whole run.

Owns the servers' lives; a test may kill, pause or restart what it is given, and whatever it left dead is
started again before the next test. Tests that use one of the JVM_FIXTURES, directly or through another
fixture, carry the mark `jvm`; those that use another server carry `slow`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seawall.local.broker import LocalCluster
from seawall.local.bucket import LocalBucket
from tests.cluster.corpus import CORPUS_FOLDER_VARIABLE, Corpus, build, load
from tests.cluster.oracle import Oracle
from tests.cluster.produce import QUICK_HOUSEKEEPING
from tests.cluster.secure import SecureBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JVM_FIXTURES = frozenset(
    {"broker", "cluster3", "kip405_broker", "secure_broker", "spark", "oracle", "corpus"}
)
SERVER_FIXTURES = frozenset({"bucket", "versitygw", "wire"})  # seconds to start, and some for each test
# A JVM that lives for minutes is not worth its second compiler: measured, two thirds of the processor's time.
# The quick compiler alone has room for 48 MiB of code unless told; when that is full it stops for good.
# Delta remembers each table for an hour, in memory: each test has its own six, and none of another's.
QUICK_SPARK = {
    "spark.driver.defaultJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    ),
    "spark.databricks.delta.delta.log.cacheSize": "24",
}
REVIVED_FIXTURES = ("broker", "cluster3", "kip405_broker", "secure_broker", "bucket")


# Where tests run in several processes (xdist), those of one group share one, and with it one of each server:
# the longest groups first. All other tests are grouped by their modules.
GROUPS = (
    ("runs", "tests/audit_engine/run/", frozenset({"spark"})),
    ("spark", "", frozenset({"spark"})),
    ("brokers", "", frozenset({"broker", "cluster3", "kip405_broker", "secure_broker"})),
    ("corpus", "", frozenset({"corpus"})),
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        if JVM_FIXTURES & fixtures:
            item.add_marker(pytest.mark.jvm)
        elif SERVER_FIXTURES & fixtures:
            item.add_marker(pytest.mark.slow)
        servers_of = ((name, below) for name, below, servers in GROUPS if servers & fixtures)
        named = (name for name, below in servers_of if item.nodeid.startswith(below))
        item.add_marker(pytest.mark.xdist_group(next(named, item.nodeid.partition("::")[0])))
    order = {name: place for place, (name, *_) in enumerate(GROUPS)}
    items.sort(key=lambda item: order.get(_group(item), len(order)))


def _group(item: pytest.Item) -> str:
    mark = item.get_closest_marker("xdist_group")
    assert mark is not None
    return str(mark.args[0])


@pytest.fixture(scope="session")
def servers_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the servers of this run keep their files and logs."""
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="session")
def broker(servers_folder: Path) -> Iterator[LocalCluster]:
    """One node. Topics are for the taking: choose a name that nobody else uses."""
    with LocalCluster(servers_folder / "broker", properties=QUICK_HOUSEKEEPING) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def cluster3(servers_folder: Path) -> Iterator[LocalCluster]:
    """Three nodes, replication factor three."""
    with LocalCluster(servers_folder / "cluster3", nodes=3, properties=QUICK_HOUSEKEEPING) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def kip405_broker(servers_folder: Path) -> Iterator[LocalCluster]:
    """One node with Kafka's own tiered storage on, over LocalTieredStorage."""
    with LocalCluster(servers_folder / "kip405", kip405=True, properties=QUICK_HOUSEKEEPING) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def secure_broker(servers_folder: Path) -> Iterator[SecureBroker]:
    """One node whose clients come by TLS and SCRAM; its plain listener is there to make topics by."""
    cluster = SecureBroker(servers_folder / "secure")
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def bucket(servers_folder: Path) -> Iterator[LocalBucket]:
    """An S3 bucket with versions, object lock and checked checksums; no Java needed."""
    with LocalBucket(servers_folder) as local:
        yield local


@pytest.fixture(scope="session")
def spark(servers_folder: Path, bucket: LocalBucket) -> Iterator[SparkSession]:
    """The one SparkSession: Delta, Kafka as a source, and s3a:// on `bucket`."""
    from seawall.spark import S3Access, spark_session  # takes a second to import, and few tests need it

    at = bucket.address
    s3 = S3Access(
        endpoint_url=at.endpoint_url,
        region=at.region,
        access_key_id=at.access_key_id,
        secret_access_key=at.secret_access_key,
    )
    session = spark_session(servers_folder / "spark", s3=s3, settings=QUICK_SPARK)
    yield session
    session.stop()


@pytest.fixture(autouse=True)
def _servers_alive_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """Starts what the test before killed and did not restart, so that no test pays for another's failure."""
    yield
    for name in REVIVED_FIXTURES:
        if name in request.fixturenames:
            request.getfixturevalue(name).revive()


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """Kafka's own DumpLogSegments."""
    return Oracle()


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Log dirs with every hard case, made by real brokers and clients. Read only: it is one for all tests.

    Set SEAWALL_TEST_CORPUS to a folder made by `python -m tests.cluster.corpus FOLDER` to build it only once
    for many runs.
    """
    if ready := os.environ.get(CORPUS_FOLDER_VARIABLE):
        return load(Path(ready))
    return build(tmp_path_factory.mktemp("corpus"))
