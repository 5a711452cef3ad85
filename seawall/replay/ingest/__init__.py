"""Ingest, once more over the topic of events itself."""
