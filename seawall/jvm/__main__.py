"""`python -m seawall.jvm`: what set-up calls, and how a maintainer changes the version of a jar."""

from __future__ import annotations

import argparse
import sys

from seawall.jvm import classpath
from seawall.jvm.java import ensure_java
from tiering.errors import StatedError


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m seawall.jvm", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb, purpose in {
        "ensure": "make Java and the jars ready, fetching only what is missing",
        "lock": "pin what the Ivy files resolve to now (for maintainers)",
        "path": "print a classpath for `java -cp`",
    }.items():
        command = verbs.add_parser(verb, help=purpose, description=purpose)
        command.add_argument("names", nargs="*", metavar="name", help=", ".join(classpath.NAMES))
    asked = parser.parse_args(arguments)
    names = tuple(asked.names) or classpath.NAMES
    try:
        _run(asked.verb, names)
    except StatedError as error:
        _say(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


def _run(verb: str, names: tuple[str, ...]) -> None:
    if verb == "path":
        for name in names:
            sys.stdout.write(classpath.classpath(name) + "\n")
        return
    java = ensure_java(_say)
    for name in names:
        if verb == "lock":
            _say(f"wrote {classpath.write_lock(name)}")
        else:
            classpath.ensure(name, say=_say)
    if verb == "ensure":
        _say(f"Java {java.version} and the jars of {', '.join(names)} are ready")


def _say(message: str) -> None:
    sys.stderr.write(f"seawall: {message}\n")


if __name__ == "__main__":
    raise SystemExit(main())
