"""What is configured, from the admin API's entries to settings."""
