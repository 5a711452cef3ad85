"""The agent: its parts alone, and the whole beside a real broker."""
