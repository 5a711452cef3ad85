"""Stand-ins for `java` and for the fetching of jars: small, and real enough to be run and to be raced."""

from __future__ import annotations

from pathlib import Path


def fake_java(folder: Path, says: str, status: int = 0) -> Path:
    """An executable `<folder>/bin/java` that says this on standard error, as Java does with its version."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\nexit {status}\n", encoding="utf-8")
    java.chmod(0o755)
    return java


def openjdk(version: str) -> str:
    return f'openjdk version "{version}" 2025-04-15\nOpenJDK Runtime Environment (build {version}+6)'
