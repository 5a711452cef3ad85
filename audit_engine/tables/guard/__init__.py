"""Whether the place of the tables lets one writer only make a commit. Asked of the store, not of its name."""
