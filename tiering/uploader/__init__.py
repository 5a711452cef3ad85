"""Moves closed segments of the logs that this broker leads to the store, each proved before it counts."""
