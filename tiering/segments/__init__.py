"""What is known of every copied segment: its record, its life, the table replayed from the metadata topic."""
