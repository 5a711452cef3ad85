"""Looks at this machine: Python, Java, the jars of each classpath, the disk under the cache folder."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from seawall.doctor.finding import Finding, fail, ok, warn
from seawall.jvm import classpath, ivy
from seawall.jvm.cache import cache_dir
from seawall.jvm.errors import JarsError, JavaError
from seawall.jvm.java import find_java

OLDEST_PYTHON = (3, 10)
# All four classpaths and what Ivy keeps of them are 220 MB.
SCARCE_BYTES = 300 * 10**6
COMFORTABLE_BYTES = 2 * 10**9
# A machine that only tiers and audits never starts a broker.
OPTIONAL_CLASSPATHS = ("broker", "broker-kip405")


def examine(environ: Mapping[str, str] | None = None) -> Iterator[Finding]:
    environ = os.environ if environ is None else environ
    cache = cache_dir(environ)
    yield python(sys.version_info[:2])
    yield java(environ)
    for name in classpath.NAMES:
        yield jars(name, cache)
    yield disk(cache)


def python(version: tuple[int, int]) -> Finding:
    shown = f"{platform.python_version()} at {sys.executable}"
    if version < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        return fail("python", f"{shown} is older than {oldest}", f"Install Python {oldest} or newer.")
    return ok("python", shown)


def java(environ: Mapping[str, str]) -> Finding:
    try:
        found = find_java(environ)
    except JavaError as error:
        what, _, _ = str(error).partition("\n\n")
        return fail("java", what, error.remedy)
    return ok("java", f"{found.version} at {found.path}")


def jars(name: str, cache: Path) -> Finding:
    """Hashes every jar: this is the one place, beside set-up, that would notice a damaged one."""
    subject = f"jars {name}"
    remedy = f"Run: {ivy.ensure_command(name)}"
    try:
        unlike = classpath.damage(name, cache=cache)
        present = classpath.directory(name, cache=cache).is_dir()
    except (OSError, JarsError) as failure:
        return fail(subject, f"cannot be read: {failure}", remedy)
    if not unlike:
        return ok(subject, f"all as pinned, for {classpath.USED_FOR[name]}")
    if present:
        return fail(subject, f"{unlike[0]}{_more(len(unlike) - 1)}", remedy)
    missing = f"not fetched yet; needed for {classpath.USED_FOR[name]}"
    return (warn if name in OPTIONAL_CLASSPATHS else fail)(subject, missing, remedy)


def disk(cache: Path) -> Finding:
    subject = "disk"
    here = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free_bytes = shutil.disk_usage(here).free
    shown = f"{free_bytes / 10**9:.1f} GB free for {cache}"
    remedy = "Free some space, or set SEAWALL_CACHE_DIR to a folder on another disk."
    if not os.access(here, os.W_OK):
        return warn(subject, f"{cache} cannot be written, so no jar can be fetched into it", remedy)
    if free_bytes < SCARCE_BYTES:
        return fail(subject, shown, remedy)
    if free_bytes < COMFORTABLE_BYTES:
        return warn(subject, shown, remedy)
    return ok(subject, shown)


def _more(count: int) -> str:
    return f", and {count} more like it" if count > 0 else ""
