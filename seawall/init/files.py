"""Writes the files: each whole or not at all, and none over one that is there, unless that was asked for.

Owns the writing. A file appears under its name when it is complete and on disk; without `overwrite` it is
linked into place, which fails where something is, so that nobody's file goes in between the look and the act.

Invariant: whatever happens, a file that is there is either as it was, or as it should be.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from seawall.init.errors import FilesExist, SettingsInUse

NAMED_AT_MOST = 4


def refuse_if_there(
    folder: Path, names: Iterable[str], *, overwrite: bool, settings_file: Path | None
) -> None:
    """FilesExist, or SettingsInUse. To be asked before anything is done."""
    there = [name for name in names if os.path.lexists(folder / name)]
    if overwrite:
        for name in there:
            if settings_file is not None and _is_same(folder / name, settings_file):
                raise SettingsInUse(folder=folder, path=folder / name)
    elif there:
        raise FilesExist(folder=folder, files=_named(there))


def write(folder: Path, files: Mapping[str, str], *, overwrite: bool) -> None:
    """Write them all. FilesExist if one came into being meanwhile; OSError is the system's own."""
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            _write_out(partial, text)
            if overwrite:
                partial.replace(target)
            else:
                _link(partial, target, folder, name)
        finally:
            partial.unlink(missing_ok=True)
        _sync_folder(target.parent)


def _write_out(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _link(partial: Path, target: Path, folder: Path, name: str) -> None:
    try:
        os.link(partial, target)
    except FileExistsError as there:
        raise FilesExist(folder=folder, files=name) from there


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_same(left: Path, right: Path) -> bool:
    try:
        return left.samefile(right)
    except OSError:
        return False


def _named(names: list[str]) -> str:
    more = len(names) - NAMED_AT_MOST
    return ", ".join(names[:NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")
