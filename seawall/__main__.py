"""`python -m seawall`: the same as the console script."""

from __future__ import annotations

from seawall.cli import main

main()
