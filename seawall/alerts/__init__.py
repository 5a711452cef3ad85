"""Alerts by the settings: endpoints with their secrets, the record, and what a run does at its end."""
