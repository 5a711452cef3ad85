"""Writing: all or nothing for each file, and nobody's file overwritten."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seawall.init import files
from seawall.init.errors import FilesExist, SettingsInUse

NEW = {"seawall.toml": "new\n", "permissions/README.md": "new\n"}


def everything(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_files_appear_whole_in_folders_that_are_made(tmp_path: Path) -> None:
    """The folder and those below are made; nothing but the files is left."""
    files.write(tmp_path / "out", NEW, overwrite=False)

    assert everything(tmp_path / "out") == NEW


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_file_that_is_there_is_refused_by_name(tmp_path: Path, is_dangling: bool) -> None:
    """A file, or a link to nowhere, is somebody's: nothing is done."""
    there = tmp_path / "seawall.toml"
    if is_dangling:
        there.symlink_to(tmp_path / "nowhere")
    else:
        there.write_text("mine\n")

    with pytest.raises(FilesExist, match=r"seawall\.toml") as refused:
        files.refuse_if_there(tmp_path, NEW, overwrite=False, settings_file=None)
    assert refused.value.exit_code == 60


def test_one_that_comes_into_being_meanwhile_is_not_overwritten_either(tmp_path: Path) -> None:
    """Between the look and the act somebody else wrote it: his stays, and nothing half-done does."""
    (tmp_path / "seawall.toml").write_text("his\n")

    with pytest.raises(FilesExist):
        files.write(tmp_path, NEW, overwrite=False)

    assert everything(tmp_path) == {"seawall.toml": "his\n"}


def test_force_writes_over_what_is_there(tmp_path: Path) -> None:
    """Asked for, the old file gives way to the new one as a whole."""
    (tmp_path / "seawall.toml").write_text("mine\n" * 100)
    files.refuse_if_there(tmp_path, NEW, overwrite=True, settings_file=None)
    files.write(tmp_path, NEW, overwrite=True)

    assert everything(tmp_path) == NEW


def test_the_settings_of_the_run_are_not_overwritten_even_so(tmp_path: Path) -> None:
    """It may hold the only copy of a password; by whatever path it is named, it is the same file."""
    (tmp_path / "seawall.toml").write_text("mine\n")
    (tmp_path / "other").mkdir()

    with pytest.raises(SettingsInUse):
        files.refuse_if_there(
            tmp_path, NEW, overwrite=True, settings_file=tmp_path / "other" / ".." / "seawall.toml"
        )


def test_a_full_disk_leaves_the_old_file_and_no_remains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write fails half-way: what was there is as it was."""
    (tmp_path / "seawall.toml").write_text("mine\n")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write(tmp_path, NEW, overwrite=True)

    assert everything(tmp_path) == {"seawall.toml": "mine\n"}
