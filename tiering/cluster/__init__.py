"""What an agent beside one broker knows of its cluster, and of the log dirs next to it."""
