"""Where the tables are: a folder on this machine, or a prefix of a bucket by s3a://.

Owns the spelling. Whether two writers there could cover each other's commits is `guard`'s question.
"""

from __future__ import annotations

from pathlib import Path

S3A = "s3a://"


def root_of(tables: str) -> str:
    """`tables` as Spark takes it."""
    return tables.rstrip("/") if tables.startswith(S3A) else str(Path(tables).absolute())
