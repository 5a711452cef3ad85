"""What can keep a package from being made, or its driver from starting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class PackageError(SeawallError):
    """the package for a Spark cluster cannot be made"""

    exit_code: ClassVar[int] = 77


@dataclass(kw_only=True, eq=False)
class FolderNotEmpty(PackageError):
    """{folder} is there, and is not a package that was made before

    Name a folder that is new, or empty.
    """

    folder: str


@dataclass(kw_only=True, eq=False)
class PinsMissing(PackageError):
    """there is no file of pinned requirements at {path}

    Run it from a checkout, name requirements/user.txt of one with --requirements, or take the packages that
    are installed here: --from-here.
    """

    path: str


@dataclass(kw_only=True, eq=False)
class NotAsPinned(PackageError):
    """the packages here are not the pinned ones, so none was taken

    {differences}
    """

    differences: str


@dataclass(kw_only=True, eq=False)
class InstallFailed(PackageError):
    """pip could not put the pinned packages together

    {why}
    """

    why: str


@dataclass(kw_only=True, eq=False)
class EntryRefused(PackageError):
    """{why}

    entry.py [--settings FILE|s3://BUCKET/KEY] [--set KEY=VALUE]... [--secret VARIABLE=REFERENCE]... VERB ...
    A REFERENCE is env:NAME, file:PATH, or aws:ID of Secrets Manager, with #NAME for a member of its JSON.
    """

    why: str


@dataclass(kw_only=True, eq=False)
class SecretUnreadable(PackageError):
    """what {variable} refers to cannot be read: {why}"""

    variable: str
    why: str
