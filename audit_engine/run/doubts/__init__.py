"""What a run knows to be missing before it judges a log."""
