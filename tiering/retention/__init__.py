"""What may be removed, and in which order: local trim, remote expiry, and a warning before a loss."""
