"""What a run has of the table since the run before; `spark` reads it."""
