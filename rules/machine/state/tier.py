"""One attempt to copy a segment, live or gone, and the steps that may follow each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

LEGAL = {
    "COPY_STARTED": {"COPY_STARTED", "COPY_FINISHED", "DELETE_STARTED"},
    "COPY_FINISHED": {"COPY_FINISHED", "DELETE_STARTED"},
    "DELETE_STARTED": {"DELETE_STARTED", "DELETE_FINISHED"},
    "DELETE_FINISHED": {"DELETE_FINISHED"},
}


@dataclass(slots=True, kw_only=True)
class Copy:
    """One attempt in the tier. `steps`: each state that was told, at its offset of the metadata topic."""

    segment_id: str
    base: int
    end: int
    data_end: int | None
    record_count: int | None
    size_bytes: int
    max_timestamp_ms: int | None
    leader_epoch: int
    generation: int
    steps: list[tuple[int, str]]
    started_ms: int
    changed_ms: int
    is_failed: bool = False
    is_fenced: bool = False
    missing: dict[str, tuple[int, int]] = field(default_factory=dict)  # by key: first and last such reading
    corrupt: dict[str, str] = field(default_factory=dict)  # by key: how deeply it was looked at
    is_restored: bool = False
    is_versioned: bool = False  # its objects have versions, which outlive a deletion
    epochs: tuple[tuple[int, int], ...] = ()  # epoch and its first offset in it, where they were said
    read_ms: int | None = None  # when it was last read back as a whole

    @property
    def state(self) -> str:
        """The last that followed legally: what is refused changes nothing (DESIGN §5)."""
        now = ""
        for _, step in self.steps:
            if not now or step in LEGAL[now]:
                now = step
        return now

    @property
    def missing_since_ms(self) -> int | None:
        """The first reading that did not find one of its objects which is still not there."""
        return min((since_ms for since_ms, _ in self.missing.values()), default=None)

    @property
    def covered_end(self) -> int:
        """As the uploader has it: up to where each offset from the base is in the bytes."""
        end = self.end if self.data_end is None else min(self.data_end, self.end)
        if self.record_count is not None and self.record_count != end - self.base:
            return self.base
        return end


class Buried(NamedTuple):
    """What is left of a copy that was deleted a while ago. `end` is its base where no version is kept."""

    at_ms: int
    metadata_offset: int
    generation: int
    base: int
    end: int
