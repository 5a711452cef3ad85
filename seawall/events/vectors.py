"""The test vectors: one file a kind, the bytes of its example as they go to Kafka.

    python -m seawall.events.vectors tests/vectors/events

Invariant: a vector that is checked in is read by every later version.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rules.events import KINDS
from seawall.events.examples import example_bytes


def write_vectors(folder: Path) -> None:
    for kind in KINDS:
        (folder / f"{kind.kind}.json").write_bytes(example_bytes(kind) + b"\n")


if __name__ == "__main__":
    write_vectors(Path(sys.argv[1]))
