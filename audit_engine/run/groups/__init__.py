"""The step of one log, and of one emitter, over all of them at once."""
