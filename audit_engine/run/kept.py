"""Frames of Spark's that are looked at more than once, held until a run ends. A lost one is made again.

Owns how long they are held. Invariant: none is held after the run.
"""

from __future__ import annotations

from typing import Any, TypeVar

Frame = TypeVar("Frame", bound=Any)


class Kept:
    """`with Kept() as kept`: `kept(frame)` is held until the end."""

    def __init__(self) -> None:
        self._frames: list[Any] = []

    def __enter__(self) -> Kept:
        return self

    def __call__(self, frame: Frame) -> Frame:
        held: Frame = frame.persist()  # in memory, and on disk what finds no room there
        self._frames.append(held)
        return held

    def __exit__(self, *_: object) -> None:
        for frame in reversed(self._frames):
            frame.unpersist()
