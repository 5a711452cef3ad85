"""python -m tests.soak [--minutes 60] [--audit-every 600] [--without-audit] [--folder DIR] [--result FILE]

Shows how it stands on standard error. Ends with 1 if anything rose, lagged, was lost or was found that is not
there; the last line of standard output is JSON, which --result keeps as a file.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

from tests.soak.bounds import Wanted
from tests.soak.seen import Soaked, numbers, samples
from tests.soak.shown import status, table
from tests.soak.soak import soak
from tests.soak.world import Kept

LINE_EVERY_S = 60.0  # where nobody looks on
ERASE = "\r\x1b[K"


class Progress:
    """A line that is written over on a terminal, and one a minute in a file."""

    def __init__(self, wanted: Wanted, keep: Callable[[Soaked], None]) -> None:
        self._wanted = wanted
        self._keep = keep
        self._is_terminal = sys.stderr.isatty()
        self._next_s = 0.0
        self._began_s = time.monotonic()

    def say(self, line: str) -> None:
        self._write(
            f"{ERASE if self._is_terminal else ''}{time.monotonic() - self._began_s:6.0f} s  {line}\n"
        )

    def show(self, found: Soaked, at_s: float) -> None:
        if at_s >= self._next_s:
            self._keep(found)
        if self._is_terminal:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            self._write(f"{ERASE}{status(found, self._wanted, at_s)[: width - 1]}")
        elif at_s >= self._next_s:
            self.say(status(found, self._wanted, at_s))
        if at_s >= self._next_s:
            self._next_s = at_s + LINE_EVERY_S

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--records-per-s", type=float, default=Wanted(seconds=0).records_per_s)
    parser.add_argument("--audit-every", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--without-audit", action="store_true", help="no ingest and no runs: no Spark")
    parser.add_argument("--folder", type=Path, help="keep logs and tables here; default: none is kept")
    parser.add_argument("--result", type=Path, metavar="FILE", help="what was measured, as JSON")
    asked = parser.parse_args()
    wanted = Wanted(
        seconds=asked.minutes * 60,
        records_per_s=asked.records_per_s,
        kept=Kept.within(asked.minutes * 60),
        audit_every_s=asked.audit_every,
        has_audit=not asked.without_audit,
    )
    began = datetime.now(tz=timezone.utc)

    def keep(found: Soaked) -> None:
        """As it stands, so that one that is ended from outside leaves what it has seen."""
        if asked.folder is not None:
            (asked.folder / "samples.json").write_text(json.dumps(samples(found)), encoding="utf-8")

    progress = Progress(wanted, keep)
    with tempfile.TemporaryDirectory(prefix="seawall-soak-", ignore_cleanup_errors=True) as temporary:
        found = soak(asked.folder or Path(temporary), wanted, say=progress.say, show=progress.show)
    keep(found)
    progress.say("it has ended")
    sys.stdout.write(f"{table(found)}\n")
    about = {"began": began.isoformat(timespec="seconds"), "cores": os.cpu_count(), "load": os.getloadavg()}
    result = json.dumps({**about, **numbers(found, wanted)})
    if asked.result is not None:
        asked.result.write_text(result + "\n", encoding="utf-8")
    sys.stdout.write(result + "\n")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
