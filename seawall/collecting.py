"""What modules bring stays until the end: the collector of garbage is not to go through it, again and again.

A verb's start is mostly imports, each of which makes objects that are looked through as they come, and once
more as the interpreter ends: a quarter of what a short verb takes.

Owns when the collector looks. Changes nothing of what it does once a verb is at work.
"""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def end_at_once() -> None:
    """Without a last look through all that there is."""
    atexit.register(gc.freeze)


@contextmanager
def imports() -> Iterator[None]:
    """What is imported in here is never looked through; nor what is there by then, if anything was."""
    was_on, known = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > known:
            gc.freeze()
        if was_on:
            gc.enable()
