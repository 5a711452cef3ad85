"""What a restore has to do in one partition directory, on the disk beside it before it does any of it.

    <partition directory>/.seawall-restore/journal.json   this record
    <partition directory>/.seawall-restore/*              the files that wait to be moved

Brokers pass over folders in a partition directory; in the log dir itself one would keep them from starting.

Owns the record's form. Invariant: a journal is replaced whole, and is on the disk when `write` returns.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from backup.logdir.errors import Unreadable
from backup.logdir.stage import Likeness, sync_folder, write_whole

WORK_FOLDER = ".seawall-restore"
NAME = "journal.json"
VERSION = 1


class State(str, Enum):
    """How far it came. Only from COMMITTING on has the directory itself changed."""

    STAGING = "staging"
    COMMITTING = "committing"
    DONE = "done"
    UNDOING = "undoing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """One restore of one directory. `files` are in the order in which they are moved in.

    Of the epochs and the checkpoint's entry there is what stood before, and what is to stand after. None: no
    entry, or no file.
    """

    plan_id: str
    state: State
    log_start: int
    first_base: int  # where the directory's own first segment begins
    files: tuple[str, ...] = ()
    sizes_bytes: tuple[int, ...] = ()
    epochs_before: str | None = None
    epochs_after: str | None = None
    entry_before: int | None = None
    entry_after: int | None = None

    def at(self, state: State) -> Journal:
        return replace(self, state=state)


def work_folder(directory: Path) -> Path:
    return directory / WORK_FOLDER


def write(directory: Path, journal: Journal, like: Likeness) -> None:
    folder = work_folder(directory)
    written: dict[str, Any] = {"version": VERSION, **asdict(journal)}
    write_whole(folder / NAME, json.dumps(written, indent=1).encode(), like)
    sync_folder(folder)


def read(directory: Path) -> Journal | None:
    """None where no restore has begun, or one was killed before it had said anything."""
    try:
        found = json.loads((work_folder(directory) / NAME).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as broken:
        raise Unreadable(directory=directory, why=f"its {WORK_FOLDER}/{NAME}: {broken}") from broken
    if found.pop("version", None) != VERSION:
        raise Unreadable(directory=directory, why=f"its {WORK_FOLDER}/{NAME} is of another version")
    found["state"] = State(found["state"])
    found["files"], found["sizes_bytes"] = tuple(found["files"]), tuple(found["sizes_bytes"])
    return Journal(**found)
