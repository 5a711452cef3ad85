"""A stopped broker's log dir made of the batches of a log, and copies of them in a tier in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from backup.catalogue.bytes import StoredPieces
from backup.logdir.apply import Restore
from backup.logdir.journal import WORK_FOLDER
from backup.logdir.replica import Wanted
from backup.logdir.side_files import epochs_text, offsets_text
from backup.plan import Piece
from tests.backup.lost_logs import pieces_of
from tests.encode.record_batch import PlainRecord
from tests.tiering.reader.tier import T0_MS, LogOfBatches, Tier
from tests.tiering.segments.strategies import LOG
from tiering.log.checkpoints import LOG_START_OFFSETS, EpochStart, TopicPartition

NAME = f"orders-{LOG.partition}"
WANTED = Wanted(log=LOG, topic="orders", broker_id=1)


def log_of(batches: int) -> LogOfBatches:
    """Batches of three records each, two epochs, a transaction that came to nothing."""
    log = LogOfBatches()
    for number in range(batches):
        log.epoch = 0 if number < batches // 2 else 2
        records = [
            PlainRecord(offset=0, timestamp_ms=T0_MS + 10 * number + n, value=b"%06d" % number)
            for n in range(3)
        ]
        if number in (3, 4):
            log.append(records, producer_id=7)
        else:
            log.append(records, codec="zstd" if number % 2 else "none")
        if number == 5:
            log.finish(7, commit=False)
    return log


@dataclass
class Disk:
    """`<folder>/logs`, whose log begins at batch `first` and is one segment, or more where `cuts` says so."""

    folder: Path
    log: LogOfBatches
    first: int
    cuts: tuple[int, ...] = ()
    entry: int | None = None
    tier: Tier = field(default_factory=Tier)

    @property
    def log_dir(self) -> Path:
        return self.folder / "logs"

    @property
    def directory(self) -> Path:
        return self.log_dir / NAME

    def make(self) -> Disk:
        self.directory.mkdir(parents=True)
        properties = f"version=1\ncluster.id={LOG.cluster_id}\nnode.id=1\n"
        (self.log_dir / "meta.properties").write_text(properties)
        (self.log_dir / ".kafka_cleanshutdown").touch()
        (self.directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {LOG.topic_id}\n")
        others = {TopicPartition("other", 0): 5}
        own = {} if self.entry is None else {TopicPartition("orders", LOG.partition): self.entry}
        (self.log_dir / LOG_START_OFFSETS).write_bytes(offsets_text({**others, **own}))
        places = [self.first, *self.cuts, len(self.log.batches)]
        for begin, end in pairwise(places):
            batches = self.log.batches[begin:end]
            stem = f"{batches[0].start:020d}"
            (self.directory / f"{stem}.log").write_bytes(b"".join(each.content for each in batches))
            (self.directory / f"{stem}.index").touch()
        base = self.log.batches[self.first].start
        start = max(base, self.entry or 0)
        live = [each for each in self.log.epochs() if each[1] > start]
        before = [each for each in self.log.epochs() if each[1] <= start][-1:]
        trimmed = [*((epoch, start) for epoch, _ in before), *live]
        (self.directory / "leader-epoch-checkpoint").write_bytes(epochs_text(EpochStart(*e) for e in trimmed))
        return self

    def copies(self, *bounds: tuple[int, int]) -> tuple[Piece, ...]:
        """Copies of the batches `[first, last)` each, as pieces."""
        self.tier.claim(self.log)
        found = []
        for first, last in bounds:
            identity = self.tier.copy(self.log, first, last)
            record = self.tier.topic.table.segment(LOG, identity)
            assert record is not None
            found.append(record)
        return pieces_of(found)

    def asked(self, pieces: tuple[Piece, ...], start: int = 0, plan_id: str = "plan") -> Restore:
        return Restore(plan_id=plan_id, wanted=WANTED, pieces=pieces, start=start)

    @property
    def pieces(self) -> StoredPieces:
        return StoredPieces(self.tier.objects)

    def state(self) -> dict[str, bytes]:
        """Every file that a broker looks at."""
        found = {
            str(path.relative_to(self.log_dir)): path.read_bytes()
            for path in self.log_dir.rglob("*")
            if path.is_file() and WORK_FOLDER not in path.parts and path.name != ".lock"
        }
        assert not [name for name in found if name.endswith(".part")], found.keys()
        return found

    def content(self) -> tuple[int, bytes]:
        """Where the log begins, and all of its bytes; each file begins where the one before ends."""
        files = sorted(self.directory.glob("*.log"))
        content = b"".join(path.read_bytes() for path in files)
        starts = {batch.start: n for n, batch in enumerate(self.log.batches)}
        for path in files:
            assert int(path.stem) in starts, path
        base = int(files[0].stem)
        assert content == b"".join(each.content for each in self.log.batches[starts[base] :])
        return base, content
