"""`seawall read`: the records of a topic, from the bucket alone."""

from seawall.cli.read.verb import read

__all__ = ["read"]
