"""Reads the topic of metadata: from a position on for ever, or once to its end."""
