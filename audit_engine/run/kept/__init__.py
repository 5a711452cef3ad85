"""Frames that a run looks at more than once."""
