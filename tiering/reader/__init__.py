"""Reads what was tiered: batches and records, by offset and time, each once, every byte checked."""
