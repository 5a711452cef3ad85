"""JVM options for servers and tools that should start in a second or two and stay small.

-XX:TieredStopAtLevel=1: only the quick compiler; start-up is what we wait for, not peak speed.
-XX:+UseSerialGC: one collector thread; several JVMs share a small machine's cores.
-XX:-UsePerfData: no file under /tmp that a killed JVM would leave behind.
-XX:+ExitOnOutOfMemoryError: a broker without memory ends visibly instead of limping.
"""

from __future__ import annotations

QUICK_START = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Dfile.encoding=UTF-8",
    "-Duser.timezone=UTC",
)
# log4j's built-in configuration prints to stdout; all it needs is a level.
LOG_LEVEL = ("-Dlog4j2.level=INFO",)


def small_server(*, heap_mib: int) -> list[str]:
    return [f"-Xmx{heap_mib}m", *QUICK_START, *LOG_LEVEL, "-XX:+ExitOnOutOfMemoryError"]


def short_lived(*, heap_mib: int = 256) -> list[str]:
    """For a command-line tool: it logs only what is wrong."""
    return [f"-Xmx{heap_mib}m", *QUICK_START]
