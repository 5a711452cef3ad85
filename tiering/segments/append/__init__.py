"""Writes to the topic of metadata."""
