"""Where the tables are: a folder on this machine, or a prefix of a bucket by s3a://.

Owns that decision. Refuses a place where two writers' commits could cover each other unseen (Delta on S3
without a log store that makes its commits conditional), unless whoever asks vouches for being alone.
"""

from __future__ import annotations

from pathlib import Path

from audit_engine.tables.errors import UnguardedStore

S3A = "s3a://"


def writable_root(tables: str, *, is_only_driver: bool) -> str:
    """`tables` as Spark takes it. Raises UnguardedStore."""
    if not tables.startswith(S3A):
        return str(Path(tables).absolute())
    if not is_only_driver:
        raise UnguardedStore(tables=tables)
    return tables.rstrip("/")


def readable_root(tables: str) -> str:
    return tables.rstrip("/") if tables.startswith(S3A) else str(Path(tables).absolute())
