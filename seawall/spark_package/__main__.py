"""`python -m seawall.spark_package VERB ...`: what entry.py does, where Seawall is installed already."""

from __future__ import annotations

import sys

from seawall.spark_package.entry import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
