"""observer: our CPU for one look at 2,000 idle partitions, against walking and stat-ing the same tree.

The peer is what a polling watcher does at least, as watchdog's PollingObserver: `os.walk`, and `os.stat` of
each file. `core_share` is ours at a look every five seconds, with the baselines that fall due meanwhile.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from audit_engine.observers.disk.observer import Observer
from bench.harness import compare
from rules.events import Event
from tiering.cluster.log_dirs import MTIME_TICK_NS, Surveyor
from tiering.cluster.topics import TopicFilter

PARTITIONS = 2_000
SEGMENTS = 5
LOOK_EVERY_MS = 5_000
LOOKS = 10
_CLUSTER = _TOPIC = "AAAAAAAAQACAAAAAAAAAAg"


class _Nowhere:
    def emit_many(self, events: Sequence[Event]) -> None:
        """Events are not what is measured."""


def log_dir(folder: Path) -> None:
    """Idle partitions, each with a few closed segments."""
    folder.mkdir()
    identity = f"version=1\ncluster.id={_CLUSTER}\nnode.id=1\ndirectory.id={_TOPIC}\n"
    (folder / "meta.properties").write_text(identity)
    for n in range(PARTITIONS):
        partition = folder / f"idle-{n}"
        partition.mkdir()
        (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {_TOPIC}\n")
        (partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
        for base in range(0, SEGMENTS * 1_000, 1_000):
            for suffix in ("log", "index", "timeindex"):
                (partition / f"{base:020d}.{suffix}").write_bytes(bytes(24))
    lines = "".join(f"idle {n} 4500\n" for n in range(PARTITIONS))
    (folder / "replication-offset-checkpoint").write_text(f"0\n{PARTITIONS}\n{lines}")


def cpu_s(act: Callable[[], object]) -> float:
    """Of one act, from LOOKS of them."""
    began = time.process_time()
    for _ in range(LOOKS):
        act()
    return (time.process_time() - began) / LOOKS


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        logs = root / "logs"
        log_dir(logs)
        (root / "agent").mkdir()
        ids, looks = count(), count()
        now_ms = time.time_ns() // 1_000_000
        observer = Observer(
            survey=Surveyor([logs], topics=TopicFilter(), now_ns=time.time_ns).survey,
            sink=_Nowhere(),
            now_ms=lambda: now_ms + LOOK_EVERY_MS * next(looks),
            new_id=lambda: str(next(ids)),
            folder=root / "agent",
        )
        observer.run_once()
        time.sleep(1.1 * MTIME_TICK_NS / 1e9)  # younger listings are not trusted, and read again
        observer.run_once()

        def walk() -> None:
            for folder, _, files in os.walk(logs):
                for file in files:
                    os.stat(os.path.join(folder, file))  # noqa: PTH116, PTH118 the peer at its fastest

        ours: list[float] = []

        def look() -> float:
            ours.append(cpu_s(observer.run_once))
            return ours[-1]

        compare(
            "observer",
            "os.walk and os.stat",
            ours=look,
            theirs=lambda: cpu_s(walk),
            unit="CPU s a look",
            more=lambda: {"core_share": round(1_000 * sum(ours) / len(ours) / LOOK_EVERY_MS, 4)},
        )
        observer.close()


if __name__ == "__main__":
    main()
