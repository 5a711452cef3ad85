"""Which Seawall this is."""

from __future__ import annotations


def version() -> str | None:
    """As it was installed; None where it runs from its source."""
    from importlib import metadata  # a command that is not asked for it does without

    try:
        return metadata.version("seawall")
    except metadata.PackageNotFoundError:
        return None
