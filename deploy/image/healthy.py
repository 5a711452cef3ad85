#!/opt/seawall/bin/python
"""The image's health check: asks /healthz of the service that the container runs. A job has none: it is well.

HEALTH_URL names another place, where the service listens elsewhere. Exits with 0 or 1.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

PORTS = {"agent": 9317, "scaler": 9319, "serve": 9320}
TIMEOUT_S = 4


def url(words: list[str], environ: dict[str, str]) -> str | None:
    """Of the container's first process; None where there is nobody to ask."""
    if environ.get("HEALTH_URL"):
        return environ["HEALTH_URL"]
    port = next((PORTS[word] for word in words if word in PORTS), None)
    return None if port is None else f"http://127.0.0.1:{port}/healthz"


def main() -> int:
    words = Path("/proc/1/cmdline").read_bytes().decode(errors="replace").split("\0")
    place = url(words, dict(os.environ))
    if place is None:
        return 0
    try:
        with urllib.request.urlopen(place, timeout=TIMEOUT_S) as answer:
            return int(answer.status != 200)
    except (urllib.error.URLError, TimeoutError, OSError):
        return 1


if __name__ == "__main__":
    sys.exit(main())
