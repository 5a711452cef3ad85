"""What keeps a question from being asked, whichever broker would answer it."""

from __future__ import annotations


class Unaskable(Exception):
    """The settings want something that this client cannot do, or the broker did not prove itself."""
