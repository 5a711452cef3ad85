"""KRaft's metadata log as values: its records, its control records, its snapshots."""
