"""What runs leave behind, as Delta tables."""
