"""What a disk may bring back, done to the files of a broker that is stopped."""

from __future__ import annotations

from pathlib import Path


def put_start(log_dir: Path, topic: str, offset: int) -> None:
    """A log-start-offset checkpoint as a disk brought it back: of this partition, another start."""
    path = log_dir / "log-start-offset-checkpoint"
    kept = [line for line in path.read_text().splitlines()[2:] if not line.startswith(f"{topic} ")]
    entries = [*kept, f"{topic} 0 {offset}"]
    path.write_text("\n".join(["0", str(len(entries)), *entries, ""]))
