"""One client of the admin API, and what its answers mean."""
