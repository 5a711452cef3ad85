"""python -m tests.soak [--minutes 60] [--audit-every 600] [--without-audit] [--folder DIR]

Ends with 1 if anything grew, lagged, was lost or was found that is not there; its last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.soak.soak import Wanted, soak


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--records-per-s", type=float, default=150.0)
    parser.add_argument("--audit-every", type=float, default=600.0, metavar="SECONDS")
    parser.add_argument("--without-audit", action="store_true", help="no ingest and no runs: no Spark")
    parser.add_argument("--folder", type=Path, help="keep logs and tables here; default: none is kept")
    asked = parser.parse_args()
    wanted = Wanted(
        seconds=asked.minutes * 60,
        records_per_s=asked.records_per_s,
        audit_every_s=asked.audit_every,
        has_audit=not asked.without_audit,
    )
    began_s = time.monotonic()

    def say(line: str) -> None:
        sys.stderr.write(f"{time.monotonic() - began_s:7.0f} s  {line}\n")
        sys.stderr.flush()

    with tempfile.TemporaryDirectory(prefix="seawall-soak-", ignore_cleanup_errors=True) as temporary:
        found = soak(asked.folder or Path(temporary), wanted, say=say)
    sys.stdout.write(f"{found.report()}\n")
    sys.stdout.write(json.dumps({"soak_minutes": asked.minutes, **found.numbers()}) + "\n")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
