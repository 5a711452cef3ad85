"""What is cut out of the bytes of a plain event."""
