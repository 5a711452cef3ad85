"""What can be had back of a log, as of now or as of a time, and the bytes of a piece, verified."""
