"""Which rows of `audit_events` a run looks at, and which logs each one is told to."""
