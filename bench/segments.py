"""The data that benchmarks read: segments of one topic's records, the same in every codec, made once."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from tests.encode.record_batch import PlainRecord, encode_batch
from tiering.log.segment import iter_batches

FOLDER = Path("build/bench")
PLAIN_BYTES = 1 << 30
RECORDS_EACH = 16
VALUE_BYTES = 1000  # 16 of these, with key and framing, are a batch of 16 KiB: the producers' default
T0_MS = 1_700_000_000_000
SEED = 20_240_617


def segment(codec: str) -> Path:
    """1 GiB of records, before compression, in batches of 16 KiB; made on first use and kept."""
    path = FOLDER / codec / f"{0:020d}.log"
    if not path.exists():
        print(f"bench: making {path}", file=sys.stderr)  # noqa: T201 a minute of silence wants a word
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".tmp")
        _write(unfinished, codec)
        unfinished.rename(path)
    return path


def one_batch(codec: str) -> Path:
    """The first batch of the same segment: what is left of a run on it is the start of the program."""
    whole = segment(codec)
    path = FOLDER / f"{codec}-one-batch" / whole.name
    with whole.open("rb") as file:
        batch = next(iter_batches(file.fileno()))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.read(batch.header.size_bytes))
    return path


def _write(path: Path, codec: str) -> None:
    chance = random.Random(SEED)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(chance.choices(letters, k=chance.randint(2, 10))) for _ in range(2000)]
    values = [" ".join(chance.choices(words, k=400)).encode()[:VALUE_BYTES] for _ in range(1024)]
    offset = plain_bytes = 0
    with path.open("wb") as file:
        while plain_bytes < PLAIN_BYTES:
            records = [
                PlainRecord(offset=o, timestamp_ms=T0_MS + o, key=b"%08d" % o, value=chance.choice(values))
                for o in range(offset, offset + RECORDS_EACH)
            ]
            file.write(encode_batch(records, codec=codec))
            plain_bytes += RECORDS_EACH * (VALUE_BYTES + 20)
            offset += RECORDS_EACH
