"""Log dirs with every hard case, made once by real brokers and clients, and copied when they stand still.

Owns the folder and its layout; readers' tests take files from it and need no broker. Nothing writes to it
after `build`. Three clusters are built side by side:

    single/killed    one broker after SIGKILL in the middle of a write: `.deleted` segments, pre-allocated
                     indexes, checkpoints that lag, no clean-shutdown marker
    single/torn      the same, with the last batch of `torn-records` and `torn-header` cut short
    single/stopped   after the broker has recovered all that, and was stopped in order
    nodes/forked-divergent   three brokers; the old leader, dead, holds records that the others do not
    nodes/stopped    after it came back, more elections, and an orderly stop; one has a `-stray` folder
    tiered/stopped   KIP-405: what is left locally, and `__remote_log_metadata`
    tiered/remote    LocalTieredStorage's files

Each state holds node-<id>/logs[-2]/ and, for three brokers, controller/logs/. Run as a program
(`python -m tests.cluster.corpus FOLDER`) it builds one to keep: see SEAWALL_TEST_CORPUS in fixtures.py.
"""

from __future__ import annotations

import io
import pickle
import shutil
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from seawall.local.broker import LocalCluster
from tests.cluster import cases_nodes, cases_records, cases_tiered, produce
from tests.cluster.cases_logs import LOG_CASES
from tests.cluster.cases_records import CODECS, RECORD_CASES
from tests.cluster.produce import QUICK_HOUSEKEEPING, Writer, Written, texts, written

CORPUS_FOLDER_VARIABLE = "SEAWALL_TEST_CORPUS"
BLOCK_BYTES = 64 * 1024
WRITTEN_FILE = "written.pickle"
GONE = ("-delete", "-stray")
TORN_TOPICS = ("torn-records", "torn-header")

# 10 MiB of zeros for each index of each active segment would be most of the corpus; `default-index` has them.
SMALL_INDEXES = {"log.index.size.max.bytes": str(64 * 1024)}
METADATA_IN_SMALL_PIECES = {
    "metadata.log.max.record.bytes.between.snapshots": "8000",
    "internal.metadata.log.segment.bytes": "16384",
}
# An authorizer that lets everyone in, so that access rules can be written at all.
OPEN_AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """`written` holds what each case's clients wrote, by the case's topic."""

    folder: Path
    written: Mapping[str, Written]

    def log_dirs(self, state: str = "single/stopped", node_id: int = 1) -> list[Path]:
        return sorted((self.folder / state / f"node-{node_id}").glob("logs*"))

    def partition(
        self, topic: str, partition: int = 0, *, state: str = "single/stopped", node_id: int = 1
    ) -> Path:
        """The folder of a partition in one state, whichever log dir it is in."""
        for log_dir in self.log_dirs(state, node_id):
            if (found := log_dir / f"{topic}-{partition}").is_dir():
                return found
        raise FileNotFoundError(f"{topic}-{partition} in {state}/node-{node_id}")

    def files(self, *suffixes: str, state: str = "", deleted: bool = False) -> list[Path]:
        """Every file with one of these suffixes, in one state or (by default) in all.

        `deleted` brings those in `…-delete` and `…-stray` folders too.
        """
        found = (path for path in (self.folder / state).rglob("*") if path.suffix in suffixes)
        return sorted(path for path in found if deleted or not path.parent.name.endswith(GONE))


def build(folder: Path) -> Corpus:
    """Make the whole corpus in an empty folder."""
    builders = (_build_single, _build_nodes, _build_tiered)
    with ThreadPoolExecutor(max_workers=len(builders)) as pool:
        made = [pool.submit(builder, folder) for builder in builders]
        cases = {case.topic: case for each in made for case in each.result()}
    with (folder / WRITTEN_FILE).open("wb") as file:
        pickle.dump(cases, file)
    shutil.rmtree(folder / "servers")
    return Corpus(folder=folder, written=cases)


def load(folder: Path) -> Corpus:
    """A corpus that an earlier run has built and kept."""
    with (folder / WRITTEN_FILE).open("rb") as file:
        return Corpus(folder=folder, written=pickle.load(file))


def _build_single(folder: Path) -> list[Written]:
    properties = QUICK_HOUSEKEEPING | SMALL_INDEXES | METADATA_IN_SMALL_PIECES | OPEN_AUTHORIZER
    cases = []
    with LocalCluster(folder / "servers" / "single", log_dirs_per_node=2, properties=properties) as cluster:
        for codec in CODECS:
            cases.append(cases_records.codec_of_client(cluster, codec))
            cases.append(cases_records.codec_of_broker(cluster, codec))
        for case in (*RECORD_CASES.values(), *LOG_CASES.values()):
            cases.append(case(cluster))
        cases += _plain_topics(cluster)
        cases.append(cases_nodes.killed_while_writing(cluster))
        _keep(cluster, folder / "single" / "killed")
        cases_nodes.torn_tails(cluster, topics=TORN_TOPICS)
        _keep(cluster, folder / "single" / "torn")
        cluster.restart()
        cluster.stop()
        _keep(cluster, folder / "single" / "stopped")
    return cases


def _plain_topics(cluster: LocalCluster) -> Iterator[Written]:
    """The topics whose tails are cut, one with indexes of Kafka's default size, one that stays empty."""
    for topic in (*TORN_TOPICS, "default-index"):
        config = {"segment.index.bytes": str(10 * 1024 * 1024)} if topic == "default-index" else {}
        produce.create_topic(cluster, topic, config=config)
        writer = Writer(cluster, topic, "plain")
        writer.send_all(texts(150))
        yield written(topic, [writer])
    produce.create_topic(cluster, "empty")
    yield written("empty", [])


def _build_nodes(folder: Path) -> list[Written]:
    properties = QUICK_HOUSEKEEPING | SMALL_INDEXES
    with LocalCluster(folder / "servers" / "nodes", nodes=3, properties=properties) as cluster:
        forked = cases_nodes.forked(cluster, lambda name: _keep(cluster, folder / "nodes" / name))
        epochs = cases_nodes.many_epochs(cluster)
        cluster.stop()
        _keep(cluster, folder / "nodes" / "stopped")
    return [forked, epochs]


def _build_tiered(folder: Path) -> list[Written]:
    properties = QUICK_HOUSEKEEPING | SMALL_INDEXES
    with LocalCluster(folder / "servers" / "tiered", kip405=True, properties=properties) as cluster:
        cases = [cases_tiered.tiered(cluster), cases_tiered.tiered_and_deleted(cluster)]
        cluster.stop()
        _keep(cluster, folder / "tiered" / "stopped")
        shutil.copytree(cluster.remote_folder, folder / "tiered" / "remote")
    return cases


def _keep(cluster: LocalCluster, target: Path) -> None:
    """Copy every node's log dirs as they are now."""
    for log_dir in cluster.folder.glob("*/logs*"):
        shutil.copytree(
            log_dir, target / log_dir.relative_to(cluster.folder), copy_function=_copy_leaving_holes
        )


def _copy_leaving_holes(source: str, target: str) -> None:
    """A pre-allocated index is 10 MiB of nothing; its copy takes no more disk than the original."""
    with Path(source).open("rb") as read, Path(target).open("wb") as write:
        while block := read.read(BLOCK_BYTES):
            if block.count(0) == len(block):
                write.seek(len(block), io.SEEK_CUR)
            else:
                write.write(block)
        write.truncate(read.tell())


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(parents=True)
    build(Path(sys.argv[1]))
