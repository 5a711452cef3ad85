"""A logger for clients whose words become part of an error, or of somebody's trouble, where they matter."""

from __future__ import annotations

import logging

QUIET = logging.getLogger(__name__)
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False
