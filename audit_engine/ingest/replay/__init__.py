"""From the quarantine into audit_events: what can be read by now."""
