"""What can keep Java or its jars from being ready. Every message ends in the line to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from seawall.errors import SeawallError


@dataclass(kw_only=True, eq=False)
class JavaError(SeawallError):
    """Java cannot be used

    {remedy}
    """

    exit_code: ClassVar[int] = 12

    remedy: str


@dataclass(kw_only=True, eq=False)
class JavaMissing(JavaError):
    """no Java was found: JAVA_HOME is not set and PATH holds no `java`

    {remedy}
    """


@dataclass(kw_only=True, eq=False)
class JavaHomeWrong(JavaError):
    """JAVA_HOME is {java_home}, and there is no executable {java_home}/bin/java

    Unset JAVA_HOME to use the `java` on PATH, or point it at Java {minimum} or newer.
    {remedy}
    """

    java_home: str
    minimum: int


@dataclass(kw_only=True, eq=False)
class JavaTooOld(JavaError):
    """{path} is Java {version}, and Kafka and Spark need {minimum} or newer

    {remedy}
    """

    path: str
    version: int
    minimum: int


@dataclass(kw_only=True, eq=False)
class JavaBroken(JavaError):
    """{path} did not say its version: {why}

    {remedy}
    """

    path: str
    why: str


@dataclass(kw_only=True, eq=False)
class JavaNotInstalled(JavaError):
    """apt-get could not install Java: {why}

    {remedy}
    """

    why: str


@dataclass(kw_only=True, eq=False)
class JarsError(SeawallError):
    """the jars of classpath `{classpath}` cannot be used"""

    exit_code: ClassVar[int] = 13

    classpath: str


@dataclass(kw_only=True, eq=False)
class UnknownClasspath(JarsError):
    """there is no classpath `{classpath}`; there are {known}"""

    known: str


@dataclass(kw_only=True, eq=False)
class NotSetUp(JarsError):
    """the jars of classpath `{classpath}` are not in {directory}

    Run: {remedy}
    """

    directory: str
    remedy: str


@dataclass(kw_only=True, eq=False)
class JarsDiffer(JarsError):
    """the jars fetched for classpath `{classpath}` are not the pinned ones, so none was kept

    {differences}
    The pinned hashes are in {lock}. Run the set-up again; if it happens again, what stands between you and
    the repository of jars changes them.
    """

    differences: str
    lock: str


@dataclass(kw_only=True, eq=False)
class LockUnreadable(JarsError):
    """line {line} of {lock} is not `<sha-256>  <file>.jar`"""

    lock: str
    line: int


@dataclass(kw_only=True, eq=False)
class FetchFailed(JarsError):
    """the jars of classpath `{classpath}` could not be fetched: {why}

    Set-up needs the network once. To use a mirror, point SEAWALL_IVY_SETTINGS at an Ivy settings file;
    behind a proxy, set JAVA_TOOL_OPTIONS="-Dhttps.proxyHost=... -Dhttps.proxyPort=...".
    Then run: {remedy}
    """

    why: str
    remedy: str


@dataclass(kw_only=True, eq=False)
class CacheUnusable(JarsError):
    """the cache folder {directory} cannot be written: {why}

    Set SEAWALL_CACHE_DIR to a folder of yours with a gigabyte free.
    """

    directory: str
    why: str
